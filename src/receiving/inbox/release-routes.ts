/** Captured mail that is released to real addresses, over HTTP (own-operations.md section 1). */
import { Forbidden } from '../../base/process/errors.ts'
import { jsonReply } from '../../platform/http/answer/reply.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import type { CapturedMail } from './capture-listener.ts'
import type { Inbox } from './inbox.ts'
import type { Released } from './release.ts'
import { PATH, TAG, viewerOf, WRITE } from './routes.ts'
import { GIVEN_RELEASE, NOT_RELEASED, RELEASED } from './shapes.ts'

export interface ReleaseCalls {
  /** @throws TooManyWaiting while others of the account are released, and as the function of createRelease */
  run(
    accountId: string,
    mail: Pick<CapturedMail, 'from' | 'raw'>,
    to: readonly string[],
    signal: AbortSignal,
  ): Promise<Released>
}

/** @param calls null: nothing is released */
export function releaseRoutes(inbox: Pick<Inbox, 'mail'>, calls: ReleaseCalls | null): Operation[] {
  return [
    operation({
      method: 'POST',
      path: `${PATH}/{id}/release`,
      id: 'releaseInbox',
      tag: TAG,
      summary: 'Send a captured message to real addresses',
      description:
        'As it was captured, through the server of `SENDWRIGHT_INBOX_RELEASE`; without that setting nothing is released.',
      auth: WRITE,
      rateLimit: 'inbox-releases',
      audit: { made: ['accepted'] },
      body: GIVEN_RELEASE,
      answers: {
        200: RELEASED,
        403: 'Nothing is released, or not to this address',
        409: NOT_RELEASED,
        503: 'Other messages of the account are being released',
      },
      async handler({ path, document, caller, signal }) {
        if (calls === null)
          throw new Forbidden('Captured mail is not released: SENDWRIGHT_INBOX_RELEASE names no server')
        const { to } = document()
        const mail = await inbox.mail(viewerOf(caller), path.id)
        const { failure, ...released } = await calls.run(caller.accountId, mail, to, signal)
        return failure === null ? released : jsonReply({ message: failure, ...released }, { status: 409 })
      },
    }),
  ]
}
