/**
 * Operations through which `sendwright backup` controls the running service. A backup is written to any folder of the machine
 * and contains the data of all accounts, so it requires the local key.
 */
import { isAbsolute } from 'node:path'
import { BadRequest, present } from '../../base/process/errors.ts'
import { described } from '../../base/shape.ts'
import { requireLocalKey } from '../../people/keys/api-keys.ts'
import { jsonReply } from '../../platform/http/answer/reply.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { flagParam, textParam } from '../../platform/http/request/inputs.ts'
import type { Backups } from './backups.ts'
import { BACKUP } from './shapes.ts'

const api = operationsOf({ tag: 'System', auth: { area: 'account', only: 'machine' } })
const PATH = '/sendwright/v1/backups'

/** `backups` is null with PostgreSQL. */
export function backupRoutes(backups: Backups | null): Operation[] {
  const operations = () => {
    if (backups === null) throw new BadRequest(WITH_POSTGRES)
    return backups
  }
  return [
    api.post(PATH, {
      id: 'startBackup',
      summary: 'Make a backup in a folder of this machine; for the command line only',
      audit: { given: ['folder'] },
      params: {
        folder: textParam('Absolute path, absent or empty', { required: true }),
        with_secret: flagParam('Whether to include the sealing secret', { default: false }),
      },
      answers: { 202: described('The backup has started', BACKUP), 409: 'Another backup is running' },
      async handler({ input, caller }) {
        requireLocalKey(caller)
        const { folder, with_secret: withSecret } = input()
        if (!isAbsolute(folder)) throw new BadRequest(`folder is not an absolute path: ${folder}`)
        return jsonReply(operations().start(folder, withSecret), { status: 202 })
      },
    }),
    api.get(`${PATH}/{id}`, {
      id: 'getBackup',
      summary: 'State of a backup; for the command line only',
      rateLimit: 'none',
      answers: { 200: BACKUP },
      async handler({ path, caller }) {
        requireLocalKey(caller)
        return present(operations().find(path.id), 'Backup not found')
      },
    }),
  ]
}

export const WITH_POSTGRES =
  'The database is PostgreSQL: back it up with pg_dump, and copy the blobs folder and the secret from the data folder.'
