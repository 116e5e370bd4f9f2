CREATE MATERIALIZED VIEW loudest_groups
COMMENT 'Who fills the offsets topic'
AS SELECT
  `group`,
  count(*) AS commits,
  count_if(fate = 'aborted') AS aborted,
  sum(bytes) AS bytes,
  min(timestamp) AS first_at,
  max(timestamp) AS last_at
FROM offset_commits
GROUP BY `group`
