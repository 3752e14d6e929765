/**
 * Operations through which `sendwright backup` controls the running service. A backup is written to any folder of the machine
 * and contains the data of all accounts, so it requires the local key.
 */
import { isAbsolute } from 'node:path'
import { requireLocalKey } from '../accounts/local-key.ts'
import { BadRequest, NotFound } from '../base/errors.ts'
import { type Operation, operation } from '../http/operation.ts'
import { jsonReply } from '../http/reply.ts'
import type { Backups } from './backups.ts'

const TAG = 'System'
const PATH = '/sendwright/v1/backups'

/** `backups` is null with PostgreSQL. */
export function backupRoutes(backups: Backups | null): Operation[] {
  const operations = () => {
    if (backups === null) throw new BadRequest(WITH_POSTGRES)
    return backups
  }
  return [
    operation({
      method: 'POST',
      path: PATH,
      id: 'startBackup',
      tag: TAG,
      summary: 'Make a backup in a folder of this machine; for the command line only',
      auth: { area: 'account', access: 'write', only: 'machine' },
      audit: { given: ['folder'] },
      params: [
        { name: 'folder', type: 'string', required: true, description: 'Absolute path, absent or empty' },
        { name: 'with_secret', type: 'boolean', description: 'Whether to include the sealing secret' },
      ],
      responses: { 202: { description: 'The backup has started' } },
      async handler({ params, caller }) {
        requireLocalKey(caller)
        const folder = params.required('folder')
        if (!isAbsolute(folder)) throw new BadRequest(`folder is not an absolute path: ${folder}`)
        return jsonReply(operations().start(folder, params.boolean('with_secret') ?? false), { status: 202 })
      },
    }),
    operation({
      method: 'GET',
      path: `${PATH}/{id}`,
      id: 'getBackup',
      tag: TAG,
      summary: 'State of a backup; for the command line only',
      auth: { area: 'account', access: 'read', only: 'machine' },
      rateLimit: 'none',
      params: [],
      responses: { 200: { description: 'State, progress, and the manifest once it is done' } },
      async handler({ path, caller }) {
        requireLocalKey(caller)
        const found = operations().find(path.id)
        if (!found) throw new NotFound('Backup not found')
        return found
      },
    }),
  ]
}

export const WITH_POSTGRES =
  'The database is PostgreSQL: back it up with pg_dump, and copy the blobs folder and the secret from the data folder.'
