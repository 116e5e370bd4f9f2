// Consumes, transforms and produces exactly once; every so many transactions are aborted and done again.
'use strict'

const ABORT_EVERY = 4

exports.startTransformer = async (command, consumer, admin, newProducer, say) => {
  const { name, group, source, target } = command
  let producer = await newProducer()
  let number = 0
  let count = 0

  const committed = async partition => {
    const [{ partitions }] = await admin.fetchOffsets({ groupId: group, topics: [source] })
    const { offset } = partitions.find(one => one.partition === partition)
    return offset === '-1' ? '0' : offset
  }

  const transact = async ({ partition, messages }) => {
    const transaction = await producer.transaction()
    const changed = messages.map(({ value }) => ({ value: `seen ${value}`, partition }))
    await transaction.send({ topic: target, messages: changed })
    const offset = String(Number(messages.at(-1).offset) + 1)
    const topics = [{ topic: source, partitions: [{ partition, offset }] }]
    await transaction.sendOffsets({ consumerGroupId: group, topics })
    say({ event: 'sent', name })
    number += 1
    if (number % ABORT_EVERY !== 0) {
      await transaction.commit()
      count += messages.length
      say({ event: 'transformed', name, count })
      return true
    }
    await transaction.abort()
    return false
  }

  const eachBatch = async ({ batch, resolveOffset, heartbeat }) => {
    let isDone = false
    try {
      isDone = await transact(batch)
    } catch (error) {
      // Whatever became of the transaction: a producer that begins anew with the same id ends it.
      process.stderr.write(`transaction: ${error.stack}\n`)
      await producer.disconnect()
      producer = await newProducer()
      consumer.seek({ topic: source, partition: batch.partition, offset: await committed(batch.partition) })
      return
    }
    if (isDone) resolveOffset(batch.lastOffset())
    await heartbeat()
  }

  await consumer.connect()
  await consumer.subscribe({ topics: [source], fromBeginning: true })
  await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch })
  return async () => {
    await consumer.disconnect()
    await producer.disconnect()
  }
}
