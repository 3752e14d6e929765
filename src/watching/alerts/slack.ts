/**
 * Slack by the token of an app of the account (Slack Web API): the workspace, its channels, and messages to them
 * (alerts.md section 6). Without one, notices go to incoming webhooks only.
 */
import { BadRequest } from '../../base/process/errors.ts'
import { jsonObject, quotable } from '../../base/values.ts'
import type { Core } from '../../core.ts'
import type { HttpClient, HttpRequest } from '../../platform/posts/http-client.ts'
import { insert } from '../../platform/store/store.ts'

export interface Workspace {
  token: string
  team_id: string | null
  team_name: string | null
  /** Permissions of the token, separated by commas. */
  scope: string | null
}

interface SlackParts extends Pick<Core, 'store' | 'sealer'> {
  client: HttpClient
  /** Without a final slash. */
  apiUrl: string
}

export type Slack = ReturnType<typeof createSlack>

const SEALED_AS = 'alert-slack'
const REASON_LENGTH_MAX = 100

export function createSlack({ store, sealer, client, apiUrl }: SlackParts) {
  const request = (token: string, method: string, params: Record<string, string>): HttpRequest => ({
    url: `${apiUrl}/${method}`,
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
    },
    body: Buffer.from(String(new URLSearchParams(params))),
  })

  /** The members of the response, or the error that Slack names. @throws BadRequest when it does not answer in its form */
  async function ask(token: string, method: string, params: Record<string, string>): Promise<SlackAnswer> {
    const outcome = await client.send(request(token, method, params))
    if (outcome.kind !== 'answered') throw new BadRequest(`Slack cannot be reached: ${outcome.why}`)
    const answer = jsonObject(outcome.body.toString())
    if (answer === null) throw new BadRequest(`Slack answered ${outcome.status}`)
    return answer['ok'] === true ? { kind: 'done', answer } : { kind: 'refused', reason: reasonOf(answer) }
  }

  return {
    ask,
    /** A message to a channel, for the queue of POSTs too. */
    message: (token: string, channel: string, text: string) =>
      request(token, 'chat.postMessage', { channel, text }),

    /** Null: the account has given no token. */
    async find(accountId: string): Promise<Workspace | null> {
      const row = await store.db
        .selectFrom('alert_slack')
        .select('workspace_sealed')
        .where('account_id', '=', accountId)
        .executeTakeFirst()
      return row ? (JSON.parse(sealer.open(SEALED_AS, row.workspace_sealed).toString()) as Workspace) : null
    },

    async save(accountId: string, workspace: Workspace, now: number): Promise<void> {
      const workspace_sealed = sealer.seal(SEALED_AS, JSON.stringify(workspace))
      const { sql, values } = insert('alert_slack', {
        account_id: accountId,
        workspace_sealed,
        updated_at: Math.floor(now),
      })
      const replace = `ON CONFLICT (account_id) DO UPDATE SET workspace_sealed = excluded.workspace_sealed,
        updated_at = excluded.updated_at`
      await store.commit([{ sql: `${sql} ${replace}`, values }])
    },

    async remove(accountId: string): Promise<void> {
      await store.commit([{ sql: 'DELETE FROM alert_slack WHERE account_id = ?', values: [accountId] }])
    },
  }
}

type SlackAnswer = { kind: 'done'; answer: Record<string, unknown> } | { kind: 'refused'; reason: string }

/** What Slack's Web API says with status 200 when it has not done what it was asked for; null: it has. */
export function refusalIn(body: Buffer): string | null {
  const answer = jsonObject(body.toString())
  return answer === null || answer['ok'] === true ? null : reasonOf(answer)
}

const reasonOf = (answer: Record<string, unknown>): string =>
  quotable(String(answer['error'] ?? '')).slice(0, REASON_LENGTH_MAX)
