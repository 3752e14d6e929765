/** Operations of sandbox recipients, and the page that their mail links to. */
import { type Operation, operation } from '../../http/operation.ts'
import { htmlReply } from '../../http/reply.ts'
import { escapeHtml, PAGE_POLICY, postButton, smallPage } from '../../http/small-page.ts'
import type { SandboxRecipients } from './recipients.ts'

const TAG = 'Sandbox'
const PATH = '/v5/sandbox/auth_recipients'
const PAGE_PATH = '/sandbox-recipients/{token}'

const RECIPIENT = {
  type: 'object',
  required: ['email', 'activated'],
  properties: { email: { type: 'string' }, activated: { type: 'boolean' } },
}

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
      params: [],
      responses: {
        200: {
          description: 'All of them',
          schema: { type: 'object', properties: { recipients: { type: 'array', items: RECIPIENT } } },
        },
      },
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
      params: [{ name: 'email', type: 'string', required: true, description: 'The address' }],
      responses: {
        200: {
          description: 'The mail is queued',
          schema: { type: 'object', properties: { recipient: RECIPIENT } },
        },
        400: { description: 'No valid address, or too many addresses' },
        429: { description: 'Too many mails in a day' },
      },
      handler: async ({ caller, params }) => ({
        recipient: await recipients.add(caller.accountId, params.required('email')),
      }),
    }),
    operation({
      method: 'DELETE',
      path: `${PATH}/{email}`,
      id: 'deleteSandboxRecipient',
      tag: TAG,
      summary: 'Remove an address',
      auth: { area: 'sandbox', access: 'write' },
      params: [],
      responses: { 200: { description: 'Removed' }, 400: { description: 'Not in the list' } },
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
  params: [{ name: 'token', type: 'string', description: 'From the link in the mail' }],
  responses: {
    200: { description: 'A page', contentType: 'text/html' },
    404: { description: 'Used, replaced or too old', contentType: 'text/html' },
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
