/**
 * DMARC: neither client has methods for it. The calls are those of the public description, made as the Go client makes
 * its own, and the members are those that it shows.
 */
import type { CallTable, ClientCall } from '../tables.ts'

const FIGURES = {
  ...{ email_count: 1, ip_count: 1, spf_fail_events: 1, dkim_fail_events: 1, auth_fail_events: 1 },
  ...{ pfqr_chart: [], auth_events: [] },
}

const get = (path: string, response: unknown): ClientCall => ({
  ...{ client: 'go', call: `GET ${path}`, method: 'GET', path: `/v1/dmarc${path}`, response },
})

export const TABLE: CallTable = {
  calls: [
    get('/domains?from=1736790000&to=1736790285', { domains: [], pfqr_chart: [] }),
    get('/domains/{domain}?from=1736790000&to=1736790285', { ...FIGURES, sources: [] }),
    get('/domains/{domain}/s/mailgun', { ...FIGURES, hosts: [] }),
    get('/domains/{domain}/s/mailgun/h/mx.mailgun.com', { ...FIGURES, ip_addresses: [] }),
    get('/domains/{domain}/s/mailgun/h/mx.mailgun.com/ip/8.8.8.8', { ...FIGURES, ruf: '' }),
    get('/records/{domain}', { entry: '', current: '', configured: false }),
    get('/setup', { InstanceID: '', CreatedAt: '', UpdatedAt: '', LastAccessed: '' }),
    {
      ...{ client: 'go', call: 'POST /referral', method: 'POST', path: '/v1/dmarc/referral' },
      json: { email: 'someone@example.com' },
      response: { referral_uri: '' },
    },
  ],
}
