/** DMARC as the public operations show it (dmarc.md). */
import { flag, integer, list, named, object, rfc3339, text } from '../../../base/shape.ts'
import { DMARC_ROW } from '../shapes.ts'

const COUNTS = {
  pass: integer('Messages that passed'),
  fail: integer('Messages that failed and were delivered all the same'),
  quarantine: integer('Messages that failed and were marked as suspicious'),
  reject: integer('Messages that failed and were rejected'),
}
const CHART = list(
  'By day in UTC, the oldest first; days without mail are left out',
  named('DmarcDay', 'Mail of a day', {
    timestamp: integer('Begin of the day, Unix seconds', { example: 1_736_726_400 }),
    ...COUNTS,
  }),
)
const EMAIL_COUNT = integer('Messages that receivers reported')

export const DOMAINS = object('Domains with their mail', {
  domains: list(
    'Domains of the account, by name; the first 1,000',
    named('DmarcDomain', 'Mail of a domain', {
      domain: text('Name', { example: 'example.com' }),
      email_count: EMAIL_COUNT,
      ...COUNTS,
    }),
  ),
  pfqr_chart: CHART,
})

const FIGURES = {
  email_count: EMAIL_COUNT,
  ip_count: integer('Addresses that it came from'),
  spf_fail_events: integer('Messages without aligned SPF, of the rows that are kept of each report'),
  dkim_fail_events: integer('Messages without aligned DKIM, of those'),
  auth_fail_events: integer('Messages without either, of those'),
  pfqr_chart: CHART,
  auth_events: list(
    'Rows of reports with a failure, most messages first; at most 100',
    named('DmarcAuthEvent', 'A row of a report', {
      ...DMARC_ROW.fields,
      reporter: text('Name of the receiver, as it says'),
      begin: rfc3339('Begin of the reported period'),
    }),
  ),
}
const PART = { email_count: EMAIL_COUNT, ip_count: integer('Addresses'), ...COUNTS }

export const DOMAIN = named('DmarcOfDomain', 'Mail of a domain by source', {
  ...FIGURES,
  sources: list(
    'Most messages first',
    named('DmarcSourceFigures', 'Mail of a source', {
      source: text(
        'Registrable domain of the hosts; unknown: without a confirmed name; other: not told apart',
      ),
      ...PART,
    }),
  ),
})
export const SOURCE = named('DmarcOfSource', 'Mail of a source by host', {
  ...FIGURES,
  hosts: list(
    'Most messages first',
    named('DmarcHostFigures', 'Mail of a host', { host: text('Confirmed name of the addresses'), ...PART }),
  ),
})
export const HOST = named('DmarcOfHost', 'Mail of a host by address', {
  ...FIGURES,
  ip_addresses: list(
    'Most messages first; at most 1,000',
    named('DmarcAddressFigures', 'Mail of an address', {
      ip: text('Address', { example: '192.0.2.1' }),
      email_count: EMAIL_COUNT,
      ...COUNTS,
    }),
  ),
})
export const ADDRESS = named('DmarcOfAddress', 'Mail of an address', {
  ...FIGURES,
  ruf: text('Always empty: reports of single messages are not taken'),
})

export const RECORDS = object('The record to publish, and the one that is', {
  entry: text('Record to publish at `_dmarc` below the domain'),
  current: text('Record that DNS has now; empty: none, or DNS did not answer'),
  configured: flag('The present record asks for reports to this service'),
})

export const SETUP = object('Since when reports come', {
  InstanceID: text('The account'),
  CreatedAt: rfc3339('When the period of the first kept report began'),
  UpdatedAt: rfc3339('When that of the last one began'),
  LastAccessed: rfc3339('The same'),
})

export const REFERRAL = object('Where reports are shown', {
  referral_uri: text('The dashboard of this service', { example: 'https://mail.example.com/' }),
})
export const REFERRAL_REQUEST = object('Whose reports', { email: text('Is not used') })
