/** A server with the methods of Slack's Web API that the service calls, for one token. */
import { createReceiver, type ReceivedPost, type Receiver } from './http-receiver.ts'

export interface FakeSlack {
  /** Base address of its methods. */
  url: string
  token: string
  /** Texts by channel. */
  messages: [channel: string, text: string][]
  /** Messages that it will refuse before it takes one again. */
  refusals: number
  /** Names of the methods called, in order. */
  calls: string[]
  receiver: Receiver
}

const CHANNELS = ['alerts', 'ops', 'old'].map((name, at) => ({
  id: `C${at}`,
  name,
  is_archived: name === 'old',
  topic: { value: '' },
}))

export async function createSlackServer(host: string): Promise<FakeSlack> {
  const receiver = await createReceiver({ host })
  const slack: FakeSlack = {
    url: `${receiver.url}/api`,
    token: 'xoxb-planted-slack-token',
    ...{ messages: [], refusals: 0, calls: [], receiver },
  }
  receiver.answer = (response, post) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(answerTo(slack, post)))
  }
  return slack
}

function answerTo(slack: FakeSlack, { path, headers, raw }: ReceivedPost): object {
  const method = path.slice('/api/'.length)
  slack.calls.push(method)
  if (headers.authorization !== `Bearer ${slack.token}`) return { ok: false, error: 'invalid_auth' }
  const form = new URLSearchParams(raw.toString())
  const channel = form.get('channel') ?? ''
  const known = CHANNELS.find(({ id }) => id === channel)
  switch (method) {
    case 'conversations.list': {
      const [from, limit] = [Number(form.get('cursor') ?? 0), Number(form.get('limit'))]
      const next_cursor = from + limit < CHANNELS.length ? String(from + limit) : ''
      return { ok: true, channels: CHANNELS.slice(from, from + limit), response_metadata: { next_cursor } }
    }
    case 'conversations.info':
      return known ? { ok: true, channel: known } : { ok: false, error: 'channel_not_found' }
    case 'chat.postMessage':
      if (known === undefined) return { ok: false, error: 'channel_not_found' }
      if (slack.refusals-- > 0) return { ok: false, error: 'internal_error' }
      slack.messages.push([channel, form.get('text') ?? ''])
      return { ok: true, channel, ts: '1.0' }
    case 'auth.revoke':
      slack.token = ''
      return { ok: true, revoked: true }
    default:
      return { ok: false, error: 'unknown_method' }
  }
}
