/** Operations of sandbox recipients, and the page that their mail links to. */
import { list, media, message, object } from '../../base/shape.ts'
import { escapeHtml, PAGE_POLICY, postButton, smallPage } from '../../platform/http/answer/pages.ts'
import { htmlReply } from '../../platform/http/answer/reply.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import { otherParam, textParam } from '../../platform/http/request/inputs.ts'
import { SANDBOX_RECIPIENT } from '../accounts/shapes.ts'
import type { SandboxRecipients } from './recipients.ts'

const TAG = 'Sandbox'
const PATH = '/v5/sandbox/auth_recipients'
const PAGE_PATH = '/sandbox-recipients/{token}'

export const sandboxRoutes = (recipients: SandboxRecipients): Operation[] => [
  ...recipientRoutes(recipients),
  ...pageRoutes(recipients),
]

function recipientRoutes(recipients: SandboxRecipients): Operation[] {
  return [
    operation({
      method: 'GET',
      path: PATH,
      id: 'listSandboxRecipients',
      tag: TAG,
      summary: 'List the addresses that sandbox domains may send to',
      auth: { area: 'sandbox', access: 'read' },
      answers: { 200: object('All of them', { recipients: list('Oldest first', SANDBOX_RECIPIENT) }) },
      handler: async ({ caller }) => ({ recipients: await recipients.list(caller.accountId) }),
    }),
    operation({
      method: 'POST',
      path: PATH,
      id: 'addSandboxRecipient',
      audit: { subject: ['email'], given: ['email'] },
      tag: TAG,
      summary: 'Add an address that sandbox domains may send to; its owner gets a mail to confirm',
      description: 'Adding it again sends the mail again.',
      auth: { area: 'sandbox', access: 'write' },
      params: { email: textParam('The address', { required: true }) },
      answers: {
        200: object('The mail is queued', { recipient: SANDBOX_RECIPIENT }),
        400: 'No valid address, or too many addresses',
        429: 'Over a rate limit, or too many mails in a day',
      },
      handler: async ({ caller, input }) => ({
        recipient: await recipients.add(caller.accountId, input().email),
      }),
    }),
    operation({
      method: 'DELETE',
      path: `${PATH}/{email}`,
      id: 'deleteSandboxRecipient',
      tag: TAG,
      summary: 'Remove an address',
      auth: { area: 'sandbox', access: 'write' },
      answers: { 200: message('Sandbox recipient deleted.'), 400: 'Not in the list' },
      async handler({ caller, path }) {
        await recipients.remove(caller.accountId, path.email)
        return { message: 'Sandbox recipient deleted.' }
      },
    }),
  ]
}

/** The token is the only right. Mail programs and scanners open links: only the button changes something. */
function pageRoutes(recipients: SandboxRecipients): Operation[] {
  return [
    operation({
      ...PUBLIC,
      method: 'GET',
      path: PAGE_PATH,
      id: 'showSandboxRecipient',
      summary: 'The page of a link to confirm; changes nothing',
      handler: async ({ path }) => pageReply(await recipients.find(path.token), askPage),
    }),
    operation({
      ...PUBLIC,
      method: 'POST',
      path: PAGE_PATH,
      id: 'confirmSandboxRecipient',
      audit: { by: 'operation' },
      summary: "Agree to receive test messages, by the page's button",
      async handler({ path, remoteAddress, requestId }) {
        return pageReply(await recipients.confirm(path.token, { remoteAddress, requestId }), donePage)
      },
    }),
  ]
}

const PUBLIC = {
  tag: TAG,
  auth: 'public',
  // A page without referrer posts with an opaque origin.
  crossSite: true,
  params: { token: otherParam('From the link in the mail') },
  answers: {
    200: media('text/html', 'A page'),
    404: media('text/html', 'Used, replaced or too old'),
  },
} as const

const HEADERS = {
  'content-security-policy': PAGE_POLICY,
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex, nofollow',
  'x-frame-options': 'DENY',
}

const pageReply = (address: string | null, page: (address: string) => string) =>
  address === null
    ? htmlReply(VOID_PAGE, { status: 404, headers: HEADERS })
    : htmlReply(page(escapeHtml(address)), { headers: HEADERS })

const askPage = (address: string) =>
  smallPage('Receive test messages', [
    `<p>Allow test messages to <strong>${address}</strong>?</p>`,
    postButton('Allow', { action: 'confirm' }),
    '<p class="soft">Nothing changes until you press the button.</p>',
  ])

const donePage = (address: string) =>
  smallPage('Test messages are allowed', [
    `<p><strong>${address}</strong> may receive test messages now.</p>`,
  ])

const VOID_PAGE = smallPage('This link is not valid', [
  '<p>It was used, was replaced by a newer one, or is too old.</p>',
])
