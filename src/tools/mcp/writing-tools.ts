/**
 * The tasks that change something, for services whose operator has allowed them. Nothing leaves at once: a message is
 * captured or waits for a person, and an action on the queue uses up the token of its own dry run.
 */
import { createHash } from 'node:crypto'
import { list, oneOf, optional, text } from '../../base/shape.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import { readToken, type Sealer, signToken } from '../../platform/store/secrets/sealing.ts'
import { QUEUE_FILTER, queueFilter } from './reading-tools.ts'
import { at, itemsOf, type Tool, type ToolContext, tool } from './tool.ts'

const RECIPIENTS_MAX = 20
/** A person reads the dry run meanwhile. */
const CONFIRM_MS = 10 * MINUTE_MS
const SAMPLE = 10
const ACTIONS = '/sendwright/v1/queue/actions'

interface WritingParts {
  sealer: Pick<Sealer, 'mac'>
  /** All mail is captured: nothing can leave. */
  isCaptured: boolean
}

export function writingTools({ sealer, isCaptured }: WritingParts): Tool[] {
  const confirmations = createConfirmations(sealer)
  return [
    tool({
      name: 'send_message',
      title: 'Send a message',
      description: isCaptured
        ? 'Sends a message into the captured inbox; nothing leaves the service.'
        : 'Hands a message in. It waits until a person releases it on the page Delivery of the dashboard.',
      writes: { destroys: false },
      input: {
        domain: text('Sending domain'),
        from: text('From'),
        to: list('Recipients', text('Address'), { only: { minItems: 1, maxItems: RECIPIENTS_MAX } }),
        subject: text('Subject'),
        text: optional(text('Text part')),
        html: optional(text('HTML part')),
        template: optional(text('Name of a template in place of the parts')),
      },
      async run({ api }, { domain, ...fields }) {
        const form = { ...fields, ...(!isCaptured && { 'o:hold-for-review': 'yes' }) }
        const { id } = await api.call('POST', at`/v3/${domain}/messages`, { form })
        return { message_id: id, becomes: isCaptured ? 'captured' : 'held until a person releases it' }
      },
    }),
    tool({
      name: 'queue_action',
      title: 'Change what waits',
      description:
        'Pauses, resumes, retries, expires, drops or moves what a filter matches. The first call only counts, and returns a token; show the person what would change, and repeat the call with the token as confirm once they agree.',
      writes: { destroys: true },
      input: {
        action: oneOf('What to do', ['pause', 'resume', 'retry', 'expire', 'drop', 'move']),
        ...QUEUE_FILTER,
        pool: optional(text('For move: the pool to move to')),
        confirm: optional(text('Token of the dry run')),
      },
      async run(context, { action, pool, confirm, ...given }) {
        const filter = queueFilter(given)
        const order = { action, filter, ...(pool !== undefined && { pool }) }
        const run = (dry_run: boolean, once?: string) =>
          context.api.call('POST', ACTIONS, { json: { ...order, dry_run } }, once)
        const matched = Number((await run(true))['matched'])
        if (confirm !== undefined && confirmations.allows(confirm, context, order, matched))
          return run(false, keyOfUse(confirm))
        const query = { ...filter, limit: SAMPLE }
        const sample = itemsOf(await context.api.read('/sendwright/v1/queue/deliveries', query))
        const dryRun = {
          ...{ changed: 0, would_change: matched, first_of_them: sample },
          confirm: confirmations.tokenFor(context, order, matched),
        }
        if (confirm === undefined) return dryRun
        return { refused: 'The token is not of this call, is too old, or more matches now.', ...dryRun }
      },
    }),
    tool({
      name: 'remove_suppression',
      title: 'Take an address off a suppression list',
      description: 'Mail to the address is sent again. Only for an address whose owner wants it.',
      writes: { destroys: true },
      input: {
        domain: text('Sending domain'),
        list: oneOf('Which list', ['bounces', 'complaints', 'unsubscribes']),
        address: text('Mail address'),
      },
      run: ({ api }, { domain, list: name, address }) =>
        api.call('DELETE', at`/v3/${domain}/${name}/${address}`),
    }),
  ]
}

type Order = Readonly<Record<string, unknown>>
type Asking = Pick<ToolContext, 'caller' | 'now'>

const PURPOSE = 'assistant-confirmation'
const TOKEN_LENGTH_MAX = 200

/** Keys of calls are kept for longer than tokens are valid, by all processes. */
const keyOfUse = (token: string) => `confirmation-${createHash('sha256').update(token).digest('hex')}`

/** Tokens of dry runs, for one use each: `<end>.<count>.<digest>`, signed, for one caller and one order, and for no more than was counted. */
function createConfirmations(sealer: Pick<Sealer, 'mac'>) {
  const digestOf = ({ caller }: Asking, order: Order) =>
    createHash('sha256')
      .update(JSON.stringify([caller.accountId, caller.keyId, order]))
      .digest('base64url')
  return {
    tokenFor(asking: Asking, order: Order, counted: number): string {
      const end = Math.floor(asking.now + CONFIRM_MS)
      return signToken(sealer, PURPOSE, Buffer.from(`${end}.${counted}.${digestOf(asking, order)}`))
    },
    allows(token: string, asking: Asking, order: Order, matched: number): boolean {
      const body = readToken(sealer, PURPOSE, token, TOKEN_LENGTH_MAX)
      const [end = '', counted = '', digest = ''] = body?.toString().split('.') ?? []
      return digest === digestOf(asking, order) && asking.now < Number(end) && matched <= Number(counted)
    },
  }
}
