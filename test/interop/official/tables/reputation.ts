/** What Gmail and Microsoft say of the mail: neither client has calls for it, so that they are those of the public description. */
import {
  DAY_MS,
  dateText,
  googleBody,
  SNDS_KEY,
  startGoogle,
  startSnds,
} from '../../../support/reputation-servers.ts'
import { eventually } from '../../../support/service.ts'
import type { CallTable, ClientCall } from '../tables.ts'

const IP = '127.0.93.9'
const SOURCES = '/sendwright/v1/reputation-sources'
const GPT = '/v1/reputationanalytics/gpt'
const RANGE = 'offset=0&limit=10&timeRangeStart={start}&timeRangeEnd={end}'
const DAY = {
  ...{
    account_id: '',
    name: '',
    user_reported_spam_ratio: 0.1,
    spf_success_ratio: 0.1,
    dkim_success_ratio: 0.1,
  },
  ...{
    dmarc_success_ratio: 0.1,
    inbound_encryption_ratio: 0.1,
    delivery_error_ratio: 0.1,
    reputation: 0,
    date: '',
  },
  delivery_errors: [{ error_class: '', error_type: '', error_ratio: 0.1 }],
  feedback_loops: [{ id: '', spam_ratio: 0.1 }],
  ip_counts: [],
}
const SNDS_DAY = {
  ...{ block_text: '', complaint_rate: '', date: '', filter_result: '', is_blocked: true, ip_address: '' },
  ...{ recipients: 1, trap_hits: 1, trap_message_period: '', trap_percentage: 0.1 },
}
const HITS = { pristine: 0, recycled: 0, typo: 0, harvested: 0, total: 1 }
const PAGING = { first: '', last: '', next: '', previous: '' }

let google: Awaited<ReturnType<typeof startGoogle>>
let snds: Awaited<ReturnType<typeof startSnds>>

const get = (call: string, path: string, response: object): ClientCall => ({
  ...{ client: 'description', call, method: 'GET', path, response },
})

export const TABLE: CallTable = {
  async surroundings(t) {
    google = await startGoogle(t)
    snds = await startSnds(t)
    return { SENDWRIGHT_IPS: IP }
  },
  async prepare(service) {
    const yesterday = dateText(Date.now() - DAY_MS)
    const day = { spam: 0.002, loops: { campaign: 0.01 }, errors: { 'reject other': 0.5 } }
    google.domains = { [service.domain]: { days: { [yesterday]: day } } }
    snds.days = { [yesterday]: [{ ip: IP, traps: 2 }] }
    snds.states = [`${IP},${IP},Yes,Blocked`]
    await service.call('PUT', `${SOURCES}/google`, { json: googleBody(google) })
    await service.call('PUT', `${SOURCES}/snds`, { json: { key: SNDS_KEY, api_url: snds.url } })
    for (const name of ['google', 'snds'])
      await eventually(`a read of ${name}`, async () => {
        const { last_read_at } = (await service.call('GET', `${SOURCES}/${name}`)).body
        return last_read_at !== null
      })
    const seconds = Math.floor(Date.now() / 1_000)
    return {
      ...{ ip: IP, start: String(seconds - 7 * 86_400), end: String(seconds) },
      ...{ first_day: dateText(Date.now() - 7 * DAY_MS), last_day: dateText(Date.now()) },
    }
  },
  calls: [
    get('GPT domains', `${GPT}/domains?${RANGE}`, { domain: '', data: [DAY], total: 1 }),
    get('GPT domain', `${GPT}/domains/{domain}?${RANGE}`, { domain: '', data: [DAY], total: 1 }),
    get('GPT domain addresses', `${GPT}/domains/{domain}/addresses?${RANGE}`, {
      domain: '',
      data: [],
      total: 0,
    }),
    get('GPT domains list', `${GPT}/domains_list?${RANGE}`, { data: [{ name: '', date: '' }], total: 1 }),
    get('GPT FBL', `${GPT}/domainsfbl?${RANGE}`, {
      data: [{ name: '', id: '', ratio: 0.1, date: '' }],
      total: 1,
    }),
    get('GPT FBL of a domain', `${GPT}/domainsfbl/{domain}?${RANGE}`, {
      data: [{ name: '', id: '', ratio: 0.1, date: '' }],
      total: 1,
    }),
    get('GPT addresses', `${GPT}/addresses?${RANGE}`, { data: [], total: 0 }),
    get('GPT address', `${GPT}/addresses/{ip}?${RANGE}`, { address: '', data: [], total: 0 }),
    get('GPT addresses list', `${GPT}/addresses_list?${RANGE}`, { data: [], total: 0 }),
    get('GPT summary', `${GPT}/summary?${RANGE}`, { domains: 1, user_reported_spam_ratio: 0.1 }),
    get('GPT summary of domains', `${GPT}/summary/domains?${RANGE}`, { data: [{ name: '' }], total: 1 }),
    get('GPT summary of addresses', `${GPT}/summary/addresses?${RANGE}`, { data: [], total: 0 }),
    get('GPT summary of errors', `${GPT}/summary/errors?${RANGE}`, { data: [{ error_class: '' }], total: 1 }),
    get('SNDS', '/v1/reputationanalytics/snds?offset=0&sortBy=ip_address&orderBy=asc&search=', {
      summary: [SNDS_DAY],
      total: 1,
    }),
    get('SNDS address', '/v1/reputationanalytics/snds/{ip}?skip=0&sortBy=date&orderBy=desc&search={ip}', {
      summary: [SNDS_DAY],
      total: 1,
    }),
    get('spam traps by day', '/v1/spamtraps?start={first_day}&end={last_day}&limit=10', {
      items: [{ date: '', ...HITS }],
      paging: PAGING,
    }),
    get('spam traps', '/v2/spamtraps?dimension=ip&limit=10', { items: [HITS], paging: PAGING }),
    {
      ...{ client: 'description', call: 'GPT domain that is not ours', method: 'GET' },
      ...{ path: `${GPT}/domains/other.example?${RANGE}`, status: 404 },
    },
  ],
}
