/** Operations of sandbox recipients, and the page that their mail links to. */
import { list, media, message, object } from '../../base/shape.ts'
import { escapeHtml, PAGE_POLICY, postButton, smallPage } from '../../platform/http/answer/pages.ts'
import { htmlReply } from '../../platform/http/answer/reply.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { otherParam, textParam } from '../../platform/http/request/inputs.ts'
import { SANDBOX_RECIPIENT } from '../accounts/shapes.ts'
import type { SandboxRecipients } from './recipients.ts'

const api = operationsOf({ tag: 'Sandbox', auth: { area: 'sandbox' } })
// A page without referrer posts with an opaque origin.
const pages = operationsOf({ tag: 'Sandbox', auth: 'public', crossSite: true })
const PATH = '/v5/sandbox/auth_recipients'
const PAGE_PATH = '/sandbox-recipients/{token}'

export const sandboxRoutes = (recipients: SandboxRecipients): Operation[] => [
  ...recipientRoutes(recipients),
  ...pageRoutes(recipients),
]

function recipientRoutes(recipients: SandboxRecipients): Operation[] {
  return [
    api.get(PATH, {
      id: 'listSandboxRecipients',
      summary: 'List the addresses that sandbox domains may send to',
      answers: { 200: object('All of them', { recipients: list('Oldest first', SANDBOX_RECIPIENT) }) },
      handler: async ({ caller }) => ({ recipients: await recipients.list(caller.accountId) }),
    }),
    api.post(PATH, {
      id: 'addSandboxRecipient',
      audit: { subject: ['email'], given: ['email'] },
      summary: 'Add an address that sandbox domains may send to; its owner gets a mail to confirm',
      description: 'Adding it again sends the mail again.',
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
    api.delete(`${PATH}/{email}`, {
      id: 'deleteSandboxRecipient',
      summary: 'Remove an address',
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
    pages.get(PAGE_PATH, {
      ...PAGE,
      id: 'showSandboxRecipient',
      summary: 'The page of a link to confirm; changes nothing',
      handler: async ({ path }) => pageReply(await recipients.find(path.token), askPage),
    }),
    pages.post(PAGE_PATH, {
      ...PAGE,
      id: 'confirmSandboxRecipient',
      audit: { by: 'operation' },
      summary: "Agree to receive test messages, by the page's button",
      async handler({ path, remoteAddress, requestId }) {
        return pageReply(await recipients.confirm(path.token, { remoteAddress, requestId }), donePage)
      },
    }),
  ]
}

const PAGE = {
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
