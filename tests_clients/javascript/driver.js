// Does with KafkaJS what tests tell it on stdin.
'use strict'

const readline = require('node:readline')
const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require('kafkajs')
const { startTransformer } = require('./transform.js')

const say = line => process.stdout.write(JSON.stringify(line) + '\n')
// Whatever is wrong with a broker that comes back within seconds is worth another try.
const retry = { initialRetryTime: 100, maxRetryTime: 1000, retries: 100 }
const log = () => ({ namespace, label, log }) => process.stderr.write(`${label} ${namespace} ${JSON.stringify(log)}\n`)
const kafka = new Kafka({
  clientId: 'driver', brokers: [process.argv[2]], retry, logLevel: logLevel.WARN, logCreator: log,
})
const admin = kafka.admin()
const producers = new Map()
const transactions = new Map()
const members = new Map()
const transformers = new Map()

// Members

// Heartbeats are frequent so that rebalances are soon noticed.
const consumer = ({ group, isolation, session_ms: sessionTimeout }, more = {}) =>
  kafka.consumer({
    groupId: group,
    heartbeatInterval: 100,
    sessionTimeout,
    rebalanceTimeout: 30_000,
    maxWaitTimeInMs: 100,
    metadataMaxAge: 1000,
    readUncommitted: isolation === 'read_uncommitted',
    ...more,
  })

const open = async command => {
  const member = { consumer: consumer(command), next: new Map(), owned: null, told: '' }
  const { HEARTBEAT, GROUP_JOIN, CRASH } = member.consumer.events
  member.consumer.on(GROUP_JOIN, ({ payload }) => {
    member.owned = Object.entries(payload.memberAssignment).flatMap(([topic, numbers]) => numbers.map(n => [topic, n]))
    member.next.clear()
  })
  // Only a heartbeat tells the generation.
  member.consumer.on(HEARTBEAT, ({ payload }) => {
    const owns = { event: 'owns', name: command.name, generation: payload.groupGenerationId, partitions: member.owned }
    const line = JSON.stringify(owns)
    if (line !== member.told) say(owns)
    member.told = line
  })
  member.consumer.on(CRASH, ({ payload }) => {
    if (!payload.restart) say({ event: 'failed', name: command.name, error: String(payload.error) })
  })
  await member.consumer.connect()
  const topics = command.pattern ? [new RegExp(command.pattern)] : command.topics
  await member.consumer.subscribe({ topics, fromBeginning: true })
  await member.consumer.run({
    autoCommit: command.auto_commit,
    autoCommitInterval: 100,
    eachMessage: async ({ topic, partition, message }) => {
      const offset = Number(message.offset)
      member.next.set(`${topic} ${partition}`, { topic, partition, offset: String(offset + 1) })
      say({ event: 'records', name: command.name, records: [[topic, partition, offset, message.value.toString()]] })
    },
  })
  members.set(command.name, member)
}

const close = async ({ name }) => {
  const member = members.get(name)
  members.delete(name)
  await member.consumer.disconnect()
}

const commit = ({ name, metadata }) => {
  const { consumer, next } = members.get(name)
  return consumer.commitOffsets([...next.values()].map(offset => ({ ...offset, metadata })))
}

const seek = ({ name, topic, partition, offset }) =>
  members.get(name).consumer.seek({ topic, partition, offset: String(offset) })

// Producers

// Idempotent, and transactional if there is an id for that.
const producer = async ({ transactional_id: transactionalId, transaction_ms: transactionTimeout }) => {
  const made = kafka.producer({ idempotent: true, maxInFlightRequests: 1, transactionalId, transactionTimeout })
  await made.connect()
  return made
}

const openProducer = async command => {
  const made = await producer(command)
  made.compression = CompressionTypes[command.compression?.toUpperCase()] ?? CompressionTypes.None
  producers.set(command.name ?? '', made)
}

const send = async command => {
  const { name = '', topic, partition, values } = command
  if (!producers.has(name)) await openProducer(command)
  const { compression } = producers.get(name)
  const sender = transactions.get(name) ?? producers.get(name)
  await sender.send({ topic, compression, messages: values.map(value => ({ value, partition })) })
}

const begin = async ({ name }) => transactions.set(name, await producers.get(name).transaction())

const end = async ({ name, commit }) => {
  const transaction = transactions.get(name)
  transactions.delete(name)
  await (commit ? transaction.commit() : transaction.abort())
}

const transform = async command => {
  const source = consumer(command, { maxBytesPerPartition: 1 })
  transformers.set(command.name, await startTransformer(command, source, admin, () => producer(command), say))
}

const stop = ({ name }) => transformers.get(name)()

// Administration

const entries = settings => Object.entries(settings).map(([name, value]) => ({ name, value }))
const resource = topic => ({ type: ConfigResourceTypes.TOPIC, name: topic })

const topics = async () => {
  const found = await admin.fetchTopicMetadata()
  const ours = found.topics.filter(({ name }) => !name.startsWith('__'))
  return Object.fromEntries(ours.map(({ name, partitions }) => [name, partitions.length]))
}

const settings = async ({ topic }) => {
  const { resources } = await admin.describeConfigs({ resources: [resource(topic)], includeSynonyms: false })
  return Object.fromEntries(resources[0].configEntries.map(({ configName, configValue }) => [configName, configValue]))
}

const cluster = async () => {
  const { brokers, controller } = await admin.describeCluster()
  return { brokers: brokers.map(({ host, port }) => `${host}:${port}`), controller: controller === brokers[0].nodeId }
}

const watermarks = async ({ topic, partition }) => {
  const found = (await admin.fetchTopicOffsets(topic)).find(one => one.partition === partition)
  return [Number(found.low), Number(found.high)]
}

const describeGroup = async ({ group }) => {
  const { groups } = await admin.describeGroups([group])
  return { state: groups[0].state, members: groups[0].members.length }
}

const offsets = async ({ group }) => {
  const found = await admin.fetchOffsets({ groupId: group })
  return found.flatMap(({ topic, partitions }) =>
    partitions.map(({ partition, offset, metadata }) => [topic, partition, Number(offset), metadata])
  )
}

const commands = {
  open, close, commit, seek, send, open_producer: openProducer, begin, end, transform, stop,
  create_topic: ({ topic, partitions, settings }) =>
    admin.createTopics({ topics: [{ topic, numPartitions: partitions, configEntries: entries(settings) }] }),
  create_partitions: ({ topic, partitions }) =>
    admin.createPartitions({ topicPartitions: [{ topic, count: partitions }] }),
  delete_topic: ({ topic }) => admin.deleteTopics({ topics: [topic] }),
  topics, settings, cluster, watermarks, offsets,
  alter_settings: ({ topic, settings }) =>
    admin.alterConfigs({ validateOnly: false, resources: [{ ...resource(topic), configEntries: entries(settings) }] }),
  delete_records: ({ topic, partition, offset }) =>
    admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(offset) }] }),
  groups: async () => (await admin.listGroups()).groups.map(({ groupId }) => groupId),
  group: describeGroup,
  set_offset: ({ group, topic, partition, offset }) =>
    admin.setOffsets({ groupId: group, topic, partitions: [{ partition, offset: String(offset) }] }),
  delete_group: ({ group }) => admin.deleteGroups([group]),
}

const returning = new Set(['topics', 'settings', 'cluster', 'watermarks', 'offsets', 'groups', 'group'])

const act = async command => {
  try {
    if (!commands[command.do]) throw new Error(`no such command: ${command.do}`)
    const result = await commands[command.do](command)
    say({ id: command.id, result: returning.has(command.do) ? result : null })
  } catch (error) {
    say({ id: command.id, error: String(error) })
  }
}

const main = async () => {
  await admin.connect()
  const running = new Set()
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const acting = act(JSON.parse(line)).finally(() => running.delete(acting))
    running.add(acting)
  }
  await Promise.all(running)
  for (const member of members.values()) await member.consumer.disconnect()
  for (const one of producers.values()) await one.disconnect()
  await admin.disconnect()
  // A consumer that is disconnected while it reconnects would start once more.
  process.exit()
}

main()
