// Both databases: the events of PostgreSQL are in partitions by time.
import assert from 'node:assert/strict'
import { eachStore } from '../../../test/support/stores.ts'
import { deliveredQuery } from './metrics.ts'
import { DIMENSIONS, type Dimension, readMetricsQuery } from './metrics-query.ts'
import { loadRules } from './rules.ts'

const rules = loadRules(null)
const OF_FAILURES: Dimension[] = ['entity-name', 'group-id', 'criticality', 'severity', 'category']

eachStore(
  'deliveries are counted by the index of their kind and time, whatever they are grouped by',
  async (store) => {
    const scope = { accountId: 'account-1', includeSubaccounts: true }
    for (const dimension of DIMENSIONS.filter((one) => !OF_FAILURES.includes(one))) {
      const asked = {
        dimensions: [dimension],
        metrics: ['delivered_smtp_count'],
        start: 'Mon, 01 Jun 2026 00:00:00 +0000',
      }
      const query = deliveredQuery(
        store,
        rules,
        scope,
        readMetricsQuery(asked, Date.UTC(2026, 5, 8), Number.POSITIVE_INFINITY),
      )
      await store.read(query) // on PostgreSQL that it runs; empty tables have no statistics to choose by
      if (store.kind === 'postgres') continue
      const plan = JSON.stringify(await store.read({ ...query, sql: `EXPLAIN QUERY PLAN ${query.sql}` }))
      assert.match(
        plan,
        /event_index_event \(domain_name=\? AND event=\? AND timestamp_us>\? AND timestamp_us<\?\)/,
        dimension,
      )
      assert.doesNotMatch(plan, /SCAN (events|event_index|event_keys)\b|AUTOMATIC/, dimension)
    }
  },
)
