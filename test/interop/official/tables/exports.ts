/** Exports: mailgun-go's exports.go. */
import { eventually } from '../../../support/service.ts'
import type { CallTable } from '../tables.ts'

const EXPORT = { id: '', status: '', url: '' }

export const TABLE: CallTable = {
  async prepare(service) {
    const { body } = await service.call('POST', '/v3/exports', { form: { url: '/lists' } })
    await eventually('an export', async () => {
      const { status } = (await service.call('GET', `/v3/exports/${body.id}`)).body
      return status === 'complete'
    })
    return { complete: body.id }
  },
  calls: [
    { client: 'go', call: 'CreateExport', method: 'POST', path: '/v3/exports', form: { url: '/domains' } },
    {
      ...{ client: 'go', call: 'ListExports', method: 'GET', path: '/v3/exports?url=/domains' },
      response: { items: [EXPORT] },
    },
    {
      ...{ client: 'go', call: 'GetExport', method: 'GET', path: '/v3/exports/{complete}' },
      response: EXPORT,
    },
    {
      client: 'go',
      call: 'GetExportLink',
      method: 'GET',
      path: '/v3/exports/{complete}/download_url',
      status: 302,
    },
  ],
}
