/** Settings of an account (accounts.md section 1): its name, how long sessions last, where signing out redirects to. */
import { sql } from 'kysely'
import { BadRequest } from '../../base/process/errors.ts'
import { message } from '../../base/shape.ts'
import { invalidFormat } from '../../base/values.ts'
import type { Core } from '../../core.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import { type InputOf, integerParam, wordParam } from '../../platform/http/request/inputs.ts'
import { ifStale } from '../../platform/store/commits.ts'
import type { Statement } from '../../platform/store/store.ts'
import { type AccountDirectory, isAccountName } from './account-directory.ts'

interface AccountSettingsParts extends Pick<Core, 'store' | 'clock'> {
  accounts: Pick<AccountDirectory, 'changed'>
}

export type AccountSettings = ReturnType<typeof createAccountSettings>

const URL_LENGTH_MAX = 2_048
const NO_CHANGE =
  'Either `name`, `absolute_timeout`, `inactive_timeout`, or `logout_redirect_url` must be provided to update account info.'
const PARAMS = {
  name: wordParam('Of the account, 1 to 255 characters', accountName),
  inactive_session_timeout: integerParam(
    'Seconds without use after which a browser session ends, 300 to 86400',
    { min: 300, max: 86_400 },
  ),
  absolute_session_timeout: integerParam('Seconds after which any browser session ends, 3600 to 2592000', {
    min: 3_600,
    max: 2_592_000,
  }),
  logout_redirect_url: wordParam('Where the browser goes after signing out', redirectUrl),
}
type SettingChanges = InputOf<typeof PARAMS>

export function createAccountSettings({ store, clock, accounts }: AccountSettingsParts) {
  const read = (accountId: string) =>
    store.db.selectFrom('account_settings').selectAll().where('account_id', '=', accountId).executeTakeFirst()

  return {
    /** @throws BadRequest for no change, when the inactive timeout would exceed the absolute one, or a subaccount's name is taken */
    async change(accountId: string, changes: SettingChanges): Promise<void> {
      if (Object.values(changes).every((value) => value === undefined)) throw new BadRequest(NO_CHANGE)
      const { name, inactive_session_timeout: inactiveSeconds } = changes
      const { absolute_session_timeout: absoluteSeconds, logout_redirect_url: logoutRedirectUrl } = changes
      const known = await read(accountId)
      const inactive = inactiveSeconds ?? known?.inactive_session_seconds ?? null
      const absolute = absoluteSeconds ?? known?.absolute_session_seconds ?? null
      if (inactive !== null && absolute !== null && inactive > absolute)
        throw new BadRequest('inactive_session_timeout must not be above absolute_session_timeout')
      const settings: Statement = {
        sql: `INSERT INTO account_settings
            (account_id, inactive_session_seconds, absolute_session_seconds, logout_redirect_url) VALUES (?, ?, ?, ?)
          ON CONFLICT (account_id) DO UPDATE SET
            inactive_session_seconds = COALESCE(excluded.inactive_session_seconds, account_settings.inactive_session_seconds),
            absolute_session_seconds = COALESCE(excluded.absolute_session_seconds, account_settings.absolute_session_seconds),
            logout_redirect_url = COALESCE(excluded.logout_redirect_url, account_settings.logout_redirect_url)`,
        values: [accountId, inactiveSeconds ?? null, absoluteSeconds ?? null, logoutRedirectUrl ?? null],
      }
      const renaming = name === undefined ? [] : [renameStatement(accountId, name)]
      await store.commit([...renaming, settings]).catch(ifStale(() => new BadRequest('Bad request')))
      if (name !== undefined) accounts.changed(accountId)
    },
    async logoutRedirectUrl(accountId: string): Promise<string | null> {
      return (await read(accountId))?.logout_redirect_url ?? null
    },
  }

  /** Touches no row for the name of another subaccount of the same parent (section 3 rule 2). */
  function renameStatement(accountId: string, name: string): Statement {
    const isTaken = sql<boolean>`EXISTS (SELECT 1 FROM accounts other JOIN accounts own ON own.id = ${accountId}
      WHERE other.parent_id = own.parent_id AND other.name = ${name} AND other.status <> 'closed'
        AND other.id <> own.id)`
    const query = store.db
      .updateTable('accounts')
      .set({ name, updated_at: Math.floor(clock.now()) })
      .where('id', '=', accountId)
      .where(sql<boolean>`NOT ${isTaken}`)
    return store.statement(query, 1)
  }
}

export function settingsRoutes(settings: AccountSettings): Operation[] {
  return [
    operation({
      method: 'PUT',
      path: '/v5/accounts',
      id: 'updateAccount',
      audit: { given: ['name', 'logout_redirect_url'] },
      tag: 'Account',
      summary: 'Change the settings of the account',
      auth: { area: 'account', access: 'write' },
      params: PARAMS,
      answers: { 200: message('Account info has been updated') },
      async handler({ input, caller }) {
        await settings.change(caller.accountId, input())
        return { message: 'Account info has been updated' }
      },
    }),
  ]
}

function accountName(text: string, name: string): string {
  if (!isAccountName(text)) throw invalidFormat(name, text)
  return text
}

/** Only http and https: browsers are sent there, so it must not be a script. */
function redirectUrl(text: string, name: string): string {
  const url = text.length <= URL_LENGTH_MAX && URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol)) throw invalidFormat(name, text)
  return url.href
}
