/** Tests of channels, the workspace of Slack and the signing key over HTTP (alerts.md section 6). */
import { BadRequest, NotFound } from '../../base/process/errors.ts'
import { message } from '../../base/shape.ts'
import type { Clock } from '../../base/time/clock.ts'
import { isPlainObject, quotable } from '../../base/values.ts'
import type { SystemMail } from '../../people/users/mails.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import { limitParam, textParam } from '../../platform/http/request/inputs.ts'
import type { HttpClient, HttpRequest } from '../../platform/posts/http-client.ts'
import type { SigningKeys } from '../webhooks/payload.ts'
import { maskedUrl } from '../webhooks/webhook-url.ts'
import { incomingWebhook, webhookNotice } from './notice-sending.ts'
import { slackText } from './notices.ts'
import {
  type AlertSettings,
  callableUrl,
  channelIdsOf,
  type EventType,
  givenEmails,
  givenEventType,
} from './settings.ts'
import {
  EMAIL_TEST,
  NEW_SIGNING_KEY,
  SLACK_CHANNEL,
  SLACK_CHANNELS,
  SLACK_TEST,
  SLACK_WORKSPACE,
  WEBHOOK_TEST,
} from './shapes.ts'
import type { Slack } from './slack.ts'
import { testEventData, testWords } from './test-notices.ts'

interface ChannelRouteParts {
  settings: AlertSettings
  slack: Slack
  client: HttpClient
  clock: Clock
  headerPrefix: string
  baseUrl: string
  sendMail: SystemMail
  /** Keys that the account's webhooks are signed with. */
  signingKeys(accountId: string): Promise<SigningKeys>
  /** Replaces the account's key; resolves to the new one. */
  resetSigningKey(accountId: string): Promise<string>
}

const api = operationsOf({ tag: 'Alerts', auth: { area: 'alerts' }, rateLimit: 'analytics' })
const WORKSPACE = '/v1/alerts/settings/slack'
const CHANNELS = '/v1/alerts/slack/channels'
/** A channel takes more than a kilobyte of an answer, of which 64 KB are read. */
const CHANNELS_MAX = 30
/** Places that one test goes to, as many as a setting may name: each is a request to somebody. */
const TARGETS_MAX = 20

export function channelRoutes(parts: ChannelRouteParts): Operation[] {
  return [
    ...testRoutes(parts),
    ...workspaceRoutes(parts),
    ...slackChannelRoutes(parts),
    signingKeyRoute(parts),
  ]
}

function testRoutes(parts: ChannelRouteParts): Operation[] {
  const { settings, slack, client, clock, sendMail } = parts

  /** @throws BadRequest unless the response is 2xx */
  async function post(request: HttpRequest, shown: string): Promise<void> {
    const outcome = await client.send(request)
    if (outcome.kind === 'answered' && outcome.status >= 200 && outcome.status < 300) return
    const answer = outcome.kind === 'answered' ? `it answered ${outcome.status}` : outcome.why
    throw new BadRequest(`the test was not taken: ${quotable(maskedUrl(shown))}: ${answer}`)
  }

  async function postToChannel(token: string, channel: string, text: string): Promise<void> {
    const answer = await slack.ask(token, 'chat.postMessage', { channel, text })
    if (answer.kind === 'refused')
      throw new BadRequest(`the test was not taken: ${quotable(channel)}: ${answer.reason}`)
  }

  /** Where the settings for the event type send it, each place once. @throws BadRequest for none, and for too many */
  async function slackTargets(accountId: string, eventType: EventType) {
    const targets = (await settings.list(accountId))
      .filter((setting) => setting.channel === 'slack' && setting.eventType === eventType)
      .map((setting) => setting.settings)
    if (targets.length === 0) throw new BadRequest(`no setting sends ${eventType} to Slack`)
    const urls = new Set(targets.flatMap(({ url }) => url ?? []))
    const channels = new Set(targets.flatMap(({ url, channel_ids }) => (url ? [] : (channel_ids ?? []))))
    if (urls.size + channels.size > TARGETS_MAX)
      throw new BadRequest(
        `the settings name ${urls.size + channels.size} places: a test goes to at most ${TARGETS_MAX}, name channels`,
      )
    return { urls: [...urls], channels: [...channels] }
  }

  async function testSlack(accountId: string, eventType: EventType, given: readonly string[]): Promise<void> {
    const text = slackText(testWords(eventType))
    const { urls, channels } =
      given.length > 0 ? { urls: [], channels: given } : await slackTargets(accountId, eventType)
    const workspace = channels.length > 0 ? await slack.find(accountId) : null
    if (channels.length > 0 && workspace === null) throw new BadRequest(NO_WORKSPACE)
    await Promise.all([
      ...urls.map((url) => post(incomingWebhook(url, text), url)),
      ...channels.map((channel) => postToChannel(workspace?.token ?? '', channel, text)),
    ])
  }

  return [
    api.post('/v1/alerts/email/test', {
      rateLimit: 'alert-tests',
      id: 'testAlertEmail',
      audit: { given: ['event_type'] },
      summary: 'Send a test notice by mail',
      body: EMAIL_TEST,
      answers: { 200: message('Test email sent', 'Accepted for delivery') },
      async handler({ params, caller: _ }) {
        const body = documentOf(params.json())
        const words = testWords(givenEventType(body['event_type']))
        const emails = givenEmails('emails', body['emails'])
        for (const to of emails) await sendMail({ to, ...words }, [])
        return { message: 'Test email sent' }
      },
    }),
    api.post('/v1/alerts/webhooks/test', {
      rateLimit: 'alert-tests',
      id: 'testAlertWebhook',
      audit: { given: ['event_type'] },
      summary: 'Post a test notice to a URL',
      body: WEBHOOK_TEST,
      answers: { 200: message('Test webhook sent', 'The URL took it') },
      async handler({ params, caller: { accountId } }) {
        const body = documentOf(params.json())
        const eventType = givenEventType(body['event_type'])
        const url = await callableUrl('url', body['url'], client)
        const content = testEventData(eventType, accountId, clock.now())
        await post(webhookNotice(url, content, await parts.signingKeys(accountId), parts), url)
        return { message: 'Test webhook sent' }
      },
    }),
    api.post('/v1/alerts/slack/test', {
      rateLimit: 'alert-tests',
      id: 'testAlertSlack',
      audit: { given: ['event_type'] },
      summary: 'Send a test notice to Slack',
      description:
        'To the channels given; without any to the targets that the settings name for the event type.',
      body: SLACK_TEST,
      answers: { 200: message('Test message sent', 'Slack took it') },
      async handler({ params, caller: { accountId } }) {
        const body = documentOf(params.json())
        const eventType = givenEventType(body['event_type'])
        await testSlack(accountId, eventType, channelIdsOf(body['channel_ids']))
        return { message: 'Test message sent' }
      },
    }),
  ]
}

const documentOf = (document: unknown) => (isPlainObject(document) ? document : {})

function workspaceRoutes({ settings, slack, clock }: ChannelRouteParts): Operation[] {
  /** With the settings that need it. */
  async function disconnect(accountId: string): Promise<void> {
    for (const { id, channel, settings: target } of await settings.list(accountId))
      if (channel === 'slack' && target.url === undefined) await settings.remove(accountId, id)
    await slack.remove(accountId)
  }

  return [
    api.put(WORKSPACE, {
      id: 'setSlackWorkspace',
      audit: { given: ['team_id', 'team_name'] },
      summary: 'Connect a workspace of Slack by the token of an app there',
      body: SLACK_WORKSPACE,
      answers: { 200: message('Slack settings updated', 'Connected') },
      async handler({ document, caller }) {
        const { token, team_id = null, team_name = null, scope = null } = document()
        await slack.save(caller.accountId, { token, team_id, team_name, scope }, clock.now())
        return { message: 'Slack settings updated' }
      },
    }),
    api.delete(WORKSPACE, {
      id: 'deleteSlackWorkspace',
      summary: 'Forget the workspace of Slack, with the settings for its channels',
      description: 'The token stays valid at Slack.',
      answers: { 200: message('Slack settings deleted', 'Forgotten') },
      async handler({ caller }) {
        await disconnect(caller.accountId)
        return { message: 'Slack settings deleted' }
      },
    }),
    api.delete('/v1/alerts/slack/oauth', {
      id: 'revokeSlackToken',
      summary: 'Revoke the token at Slack, and forget the workspace',
      answers: { 200: message('Slack access token revoked', 'Revoked') },
      async handler({ caller }) {
        const workspace = await slack.find(caller.accountId)
        // A token that Slack does not accept is void already.
        if (workspace !== null) await slack.ask(workspace.token, 'auth.revoke', {})
        await disconnect(caller.accountId)
        return { message: 'Slack access token revoked' }
      },
    }),
  ]
}

function slackChannelRoutes({ slack, baseUrl }: ChannelRouteParts): Operation[] {
  const pageOf = (limit: number, page?: string) => {
    const query = new URLSearchParams({ limit: String(limit), ...(page !== undefined && { page }) })
    return `${baseUrl}${CHANNELS}?${query}`
  }
  return [
    api.get(CHANNELS, {
      id: 'listSlackChannels',
      summary: 'List the channels of the workspace of Slack',
      params: {
        limit: limitParam(CHANNELS_MAX, CHANNELS_MAX, { above: 'cut' }),
        page: textParam('As a link of the page before has it'),
      },
      answers: { 200: SLACK_CHANNELS },
      async handler({ input, caller }) {
        const { limit, page } = input()
        const workspace = await slack.find(caller.accountId)
        const none = { first: '', last: '', next: '', previous: '' }
        if (workspace === null) return { items: [], paging: none }
        const answer = await slack.ask(workspace.token, 'conversations.list', {
          ...{ limit: String(limit), types: 'public_channel,private_channel' },
          ...(page !== undefined && { cursor: page }),
        })
        if (answer.kind === 'refused') throw new BadRequest(`Slack answered: ${answer.reason}`)
        const { channels, response_metadata: metadata } = answer.answer
        const cursor = isPlainObject(metadata) ? metadata['next_cursor'] : ''
        const next = typeof cursor === 'string' && cursor !== '' ? pageOf(limit, cursor) : ''
        return {
          items: (Array.isArray(channels) ? channels : []).filter(isPlainObject).map(channelView),
          paging: { ...none, first: pageOf(limit), next },
        }
      },
    }),
    api.get(`${CHANNELS}/{id}`, {
      id: 'readSlackChannel',
      summary: 'Read a channel of the workspace of Slack',
      answers: { 200: SLACK_CHANNEL, 404: 'No such channel, or no workspace' },
      async handler({ path: { id }, caller }) {
        const workspace = await slack.find(caller.accountId)
        const [channel = ''] = channelIdsOf([id])
        const answer = workspace && (await slack.ask(workspace.token, 'conversations.info', { channel }))
        const found = answer?.kind === 'done' ? answer.answer['channel'] : undefined
        if (!isPlainObject(found)) throw new NotFound('Slack channel not found')
        return channelView(found)
      },
    }),
  ]
}

const NO_WORKSPACE = 'no workspace of Slack is connected: PUT /v1/alerts/settings/slack connects one'

const channelView = ({ id, name, is_archived }: Record<string, unknown>) => ({
  id: String(id ?? ''),
  name: String(name ?? ''),
  is_archived: is_archived === true,
})

function signingKeyRoute({ resetSigningKey }: ChannelRouteParts): Operation {
  return api.put('/v1/alerts/settings/webhooks/signing_key', {
    id: 'resetAlertSigningKey',
    summary: 'Replace the key that webhooks are signed with',
    description: 'It is the key of all webhooks of the account, not of notices alone.',
    auth: { area: 'account', access: 'write' },
    answers: { 200: NEW_SIGNING_KEY },
    handler: async ({ caller }) => ({ signing_key: await resetSigningKey(caller.accountId) }),
  })
}
