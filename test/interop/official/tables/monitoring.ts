/**
 * Monitored domains and addresses: mailgun-go's inboxready_domains.go, and the types of the operations for which it has no
 * method yet (internal/types/inboxready), as a client generated from them would call and read.
 */
import { ownAddress } from '../../../support/service.ts'
import type { CallTable } from '../tables.ts'

const DOMAIN = {
  ...{ acid: '', created_at: 0, name: '', services: {}, txt_record: '' },
  verified: { status: '', verified_at: 0 },
}
const PAGING = { first: '', last: '', next: '', previous: '' }
const IP = { ip: '', ip_pool: '', description: '', state: '', listed: [] }
const ADDRESS = ownAddress()
const WORDS = { ip_pool: 'main', description: 'of the tests' }

export const TABLE: CallTable = {
  surroundings: async () => ({ SENDWRIGHT_IPS: ADDRESS }),
  prepare: async () => ({ address: ADDRESS }),
  calls: [
    {
      ...{ client: 'go', call: 'AddDomainToMonitoring', method: 'POST', path: '/v1/inboxready/domains' },
      form: { domain: '{domain}' },
      response: { domain: DOMAIN, message: 'The domain has been added' },
    },
    {
      ...{ client: 'go', call: 'AddDomainToMonitoring', method: 'POST', path: '/v1/inboxready/domains' },
      form: { domain: 'monitored-by-go.com' },
      response: { domain: DOMAIN, message: 'The domain has been added' },
    },
    {
      ...{ client: 'go', call: 'ListMonitoredDomains', method: 'GET' },
      path: '/v1/inboxready/domains?limit=10',
      response: { items: [DOMAIN], paging: PAGING },
    },
    {
      ...{ client: 'go', call: 'PUTV1InboxreadyDomainsVerify', method: 'PUT' },
      path: '/v1/inboxready/domains/verify?domain=monitored-by-go.com',
      response: { message: 'Domain pending verification' },
    },
    {
      ...{ client: 'go', call: 'DeleteMonitoredDomain', method: 'DELETE' },
      path: '/v1/inboxready/domains?domain=monitored-by-go.com',
      response: { message: 'monitored-by-go.com has been removed' },
    },
    {
      ...{ client: 'go', call: 'GETV1InboxreadyIPAddresses', method: 'GET' },
      path: '/v1/inboxready/ip_addresses?limit=100',
      response: { items: [IP] },
    },
    {
      ...{ client: 'go', call: 'POSTV1InboxreadyIPAddresses', method: 'POST' },
      path: '/v1/inboxready/ip_addresses',
      json: { ip: '{address}', ...WORDS },
      status: 201,
      response: IP,
    },
    {
      ...{ client: 'go', call: 'PUTV1InboxreadyIPAddressesIP', method: 'PUT' },
      path: '/v1/inboxready/ip_addresses/{address}',
      json: WORDS,
      response: IP,
    },
    {
      ...{ client: 'go', call: 'GETV1InboxreadyIPAddressesIP', method: 'GET' },
      path: '/v1/inboxready/ip_addresses/{address}',
      response: IP,
    },
    {
      ...{ client: 'go', call: 'DELETEV1InboxreadyIPAddressesIP', method: 'DELETE' },
      path: '/v1/inboxready/ip_addresses/{address}',
      status: 204,
    },
    {
      ...{ client: 'go', call: 'GETV1MonitoringDomains', method: 'GET', path: '/v1/monitoring/domains' },
      response: { domains: [{ domain: '', updated_at: '', state: '', listed: [] }] },
    },
    {
      ...{ client: 'go', call: 'GETV1MonitoringDomainsBlocklists', method: 'GET' },
      path: '/v1/monitoring/domains/{domain}/blocklists',
      response: { blocklists: [] },
    },
    {
      ...{ client: 'go', call: 'GETV1MonitoringDomainsDomainEvents', method: 'GET' },
      path: '/v1/monitoring/domains/{domain}/events',
      response: { events: [], paging: PAGING },
    },
    {
      ...{ client: 'go', call: 'GETV1MonitoringDomainsEvents', method: 'GET' },
      path: '/v1/monitoring/domains/events',
      response: { events: [], paging: PAGING },
    },
  ],
}
