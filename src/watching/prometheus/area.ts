/**
 * Figures for Prometheus (own-operations.md section 9). Counters and histograms are of this process, and start at 0 with
 * it, as Prometheus expects; gauges of the queue are of the whole database.
 */

import type { Area } from '../../area.ts'
import { media } from '../../base/shape.ts'
import type { Core } from '../../core.ts'
import type { Delivery } from '../../mail/deliver/contract.ts'
import { bytesReply } from '../../platform/http/answer/reply.ts'
import type { Answered } from '../../platform/http/exchange.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import type { JobReport } from '../../platform/jobs/job.ts'
import type { ContentCheckArea } from '../../sending/content-check/area.ts'
import type { RelayStates } from '../../sending/relays/relay-states.ts'
import type { AlertsArea } from '../alerts/area.ts'
import type { EventSinksArea } from '../event-sinks/area.ts'
import { createGauges } from './gauges.ts'
import { createInstruments } from './instruments.ts'

export interface PrometheusArea extends Area {
  /** For the HTTP listener: one call per answer. */
  answered(request: Answered): void
}

interface PrometheusUses {
  delivery: Delivery
  alerts: Pick<AlertsArea, 'triggeredOwn'>
  jobs(): Promise<JobReport[]>
  relays: RelayStates
  content: Pick<ContentCheckArea, 'check' | 'scanners'>
  sinks: EventSinksArea['known']
}

/** Counting a million waiting deliveries takes a tenth of a second: scrapers within this time share one reading. */
const KEPT_MS = 2_000

export function prometheusArea(
  core: Core,
  { delivery, alerts, jobs, relays, content, sinks }: PrometheusUses,
): PrometheusArea {
  const { clock } = core
  const { registry, followProcess, answered, recorded } = createInstruments(core)
  const readGauges = createGauges(registry, {
    ...core,
    delivery,
    jobs,
    relays,
    content,
    sinks,
    alerts: alerts.triggeredOwn,
  })
  let last: { at: number; done: Promise<void> } | null = null

  async function scrape(): Promise<string> {
    followProcess()
    const now = clock.monotonic()
    if (last === null || now - last.at > KEPT_MS) {
      const reading = { at: now, done: readGauges() }
      reading.done.catch(() => {
        if (last === reading) last = null
      })
      last = reading
    }
    await last.done
    return registry.metrics()
  }

  return {
    answered,
    operations: [scrapeOperation(registry.contentType, scrape)],
    withEvents: { of: null, rows: recorded },
    stop: () => registry.clear(),
  }
}

const scrapeOperation = (contentType: string, scrape: () => Promise<string>): Operation =>
  operation({
    method: 'GET',
    path: '/metrics',
    id: 'readPrometheusMetrics',
    tag: 'System',
    summary: 'Figures of this process for Prometheus',
    auth: { area: 'domains', access: 'read', only: 'first' },
    rateLimit: 'none',
    answers: { 200: media('text/plain', 'Text format 0.0.4') },
    async handler() {
      return bytesReply(Buffer.from(await scrape()), contentType)
    },
  })
