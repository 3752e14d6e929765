/** Features that an account switches for itself (accounts.md section 1 rules 6 and 7). */
import { sql, type Transaction } from 'kysely'
import { foreignJsonIn } from '../../base/foreign-json.ts'
import { BadRequest } from '../../base/process/errors.ts'
import { invalidFormat, isPlainObject, jsonText } from '../../base/values.ts'
import { type Operation, operation } from '../../platform/http/operation.ts'
import { parsedParam } from '../../platform/http/request/inputs.ts'
import type { Params } from '../../platform/http/request/params.ts'
import type { Schema } from '../../platform/store/schema.ts'
import type { Store } from '../../platform/store/store.ts'
import type { AccountDirectory } from './account-directory.ts'
import { SUCCESS } from './shapes.ts'

const VALUE_LENGTH_MAX = 256
const featureParam = (description: string) =>
  parsedParam(`${description}. JSON: {"enabled": true} or {"enabled": false}`, enabledOf, { type: 'json' })
const FEATURES = {
  webhooks_redact_pii: featureParam('Webhooks without personal data of recipients'),
  ai_insights: featureParam('Stored, without effect here'),
  strict_parameters: featureParam('Calls with parameters that are not known are refused'),
}

export function accountFeatureRoutes(store: Store, accounts: Pick<AccountDirectory, 'changed'>): Operation[] {
  return [
    operation({
      method: 'PUT',
      path: '/v5/accounts/features',
      id: 'updateAccountFeatures',
      audit: { given: Object.keys(FEATURES) },
      tag: 'Account',
      summary: 'Switch features of the account on and off',
      auth: { area: 'account', access: 'write' },
      params: FEATURES,
      answers: { 200: SUCCESS },
      async handler({ input, caller }) {
        const given = Object.entries(input()).flatMap(([name, enabled]) =>
          enabled === undefined ? [] : [[name, enabled] as const],
        )
        if (given.length === 0) throw new BadRequest('No valid updates provided')
        const { strict_parameters: isStrict, ...settings } = Object.fromEntries(given)
        await store.transaction(async (tx) => {
          await saveSettings(tx, caller.accountId, settings)
          if (isStrict !== undefined) await saveStrict(tx, store.kind, caller.accountId, isStrict)
        })
        accounts.changed(caller.accountId)
        return { success: true }
      },
    }),
  ]
}

async function saveSettings(
  tx: Transaction<Schema>,
  accountId: string,
  settings: Readonly<Record<string, boolean>>,
): Promise<void> {
  const values = Object.fromEntries(Object.entries(settings).map(([name, isOn]) => [name, isOn ? 1 : 0]))
  if (Object.keys(values).length === 0) return
  await tx
    .insertInto('account_settings')
    .values({ account_id: accountId, ...values })
    .onConflict((conflict) => conflict.column('account_id').doUpdateSet(values))
    .execute()
}

/** In the account's row, which every call has at hand; a parent writes other features into it. */
async function saveStrict(
  tx: Transaction<Schema>,
  kind: Store['kind'],
  accountId: string,
  isStrict: boolean,
): Promise<void> {
  const value = JSON.stringify({ strict_parameters: isStrict })
  const merged =
    kind === 'postgres'
      ? sql<string>`(features_json::jsonb || ${value}::jsonb)::text`
      : sql<string>`json_patch(features_json, ${value})`
  await tx.updateTable('accounts').set({ features_json: merged }).where('id', '=', accountId).execute()
}

/** @throws BadRequest for anything but `{"enabled": <boolean>}` */
function enabledOf(params: Params, name: string): boolean | undefined {
  const given = params.value(name)
  if (given === undefined || given === '') return undefined
  const value = typeof given === 'string' ? parsed(name, given) : given
  if (isPlainObject(value) && typeof value['enabled'] === 'boolean') return value['enabled']
  throw invalidFormat(name, jsonText(given))
}

function parsed(name: string, text: string): unknown {
  if (text.length > VALUE_LENGTH_MAX) throw invalidFormat(name, text)
  const value = foreignJsonIn(text)
  if (value === undefined) throw invalidFormat(name, text)
  return value
}
