/** Bounces and complaints that Amazon SES reports through topics of Amazon SNS (decision 187). */
import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import type { Reports } from '../bounces/reports.ts'
import { createSigningCertificates } from './certificates.ts'
import { createNotices } from './notices.ts'
import { snsRoutes } from './routes.ts'
import { createTopics } from './topics.ts'

export function snsArea(core: Core, { reports }: { reports: Reports }): Area {
  const { config, store, clock, log, httpClient } = core
  const topics = createTopics(store, clock)
  const certificates = createSigningCertificates({ httpClient, clock })
  const take = createNotices({ topics, certificates, reports, httpClient, clock, log })
  return { operations: snsRoutes({ topics, take, baseUrl: config.publicUrl }) }
}
