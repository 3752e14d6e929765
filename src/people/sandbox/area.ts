/** Authorised recipients of sandbox domains; built after the messages, which send its mail. */
import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import type { SystemMail } from '../users/mails.ts'
import { createSandboxRecipients } from './recipients.ts'
import { sandboxRoutes } from './routes.ts'

export function sandboxArea({ store, sealer, clock, config }: Core, sendMail: SystemMail): Area {
  const { publicUrl } = config
  return {
    operations: sandboxRoutes(createSandboxRecipients({ store, sealer, clock, sendMail, publicUrl })),
    async accountDeleted(accountId) {
      await store.commit(
        ['sandbox_recipients', 'sandbox_mails'].map((table) => ({
          sql: `DELETE FROM ${table} WHERE account_id = ?`,
          values: [accountId],
        })),
      )
    },
  }
}
