/** Automatic sender security over HTTP (domain-keys.md E9 to E11). */
import { BadRequest, NotFound } from '../../../base/process/errors.ts'
import { message, type Of, object, text } from '../../../base/shape.ts'
import { type Operation, operationsOf } from '../../../platform/http/operation.ts'
import { flagParam, textParam } from '../../../platform/http/request/inputs.ts'
import type { Caller } from '../../../platform/http/rights/auth.ts'
import type { SenderSecurityRow } from '../../../platform/store/schema.ts'
import { NO_SENDER_SECURITY } from '../create-domain.ts'
import { dkimName } from '../dns/dns-records.ts'
import type { Domain } from '../domain.ts'
import { KEY_ROTATION, ROTATION_DOMAIN } from '../shapes.ts'
import type { KeyParts } from './dkim-keys.ts'
import { startRotation } from './rotation.ts'
import {
  DEFAULT_INTERVAL,
  MANAGED_SELECTORS,
  newSecurityRow,
  parseInterval,
  rotationOf,
  securityState,
  spareSelector,
} from './sender-security.ts'

const api = operationsOf({ tag: 'Domain keys', auth: { area: 'domains' }, rateLimit: 'domains' })
const PATH = '/v1/dkim_management/domains/{name}'
const NO_DOMAIN = object('The domain does not exist, or belongs to another account', {
  Description: text('The text', { example: 'domain not found' }),
})

export function rotationRoutes(parts: KeyParts): Operation[] {
  return [
    api.get('/sendwright/v1/domains/{name}/key-rotation', {
      id: 'readKeyRotation',
      summary: 'How far automatic sender security is, and a rotation in progress',
      answers: { 200: KEY_ROTATION },
      async handler({ path, caller }) {
        const domain = await ownDomain(parts, caller, path.name)
        if (!domain) throw new NotFound('Domain not found')
        return progressView(await securityOf(parts, domain))
      },
    }),
    api.put(`${PATH}/rotation`, {
      id: 'updateKeyRotation',
      audit: { action: 'domain-key.set-rotation', given: ['rotation_interval'] },
      summary: 'Rotate the keys of automatic sender security from time to time, or stop that',
      params: {
        rotation_enabled: flagParam('Rotate', { required: true, missing: 'rotation_enabled is required' }),
        rotation_interval: textParam(`<n>d or <n>h, at least 5 days; at first ${DEFAULT_INTERVAL}`),
      },
      answers: { 200: object('The domain’s rotation', { domain: ROTATION_DOMAIN }), 404: NO_DOMAIN },
      async handler({ input, path, caller }) {
        const domain = await domainOf(parts, caller, path.name)
        const { rotation_enabled: enabled, rotation_interval: interval } = input()
        if (!enabled && interval !== undefined)
          throw new BadRequest('rotation_interval is not allowed unless also enabling DKIM rotation', {
            form: 'Reason',
          })
        if (interval !== undefined) parseInterval(interval)
        return { domain: rotationView(parts, await setRotation(parts, domain, enabled, interval)) }
      },
    }),
    api.post(`${PATH}/rotate`, {
      id: 'rotateKey',
      audit: { action: 'domain-key.rotate' },
      summary: 'Rotate the key of automatic sender security now',
      answers: { 200: message('ok', 'The rotation has begun'), 404: NO_DOMAIN },
      async handler({ path, caller }) {
        const domain = await domainOf(parts, caller, path.name)
        const row = await securityOf(parts, domain)
        const state = row?.state ?? 'disabled'
        if (!row || state !== 'enabled')
          throw new BadRequest(`only domains in enabled can rotate their keys. Current state: ${state}`, {
            form: 'Reason',
          })
        await startRotation(parts, row)
        return { message: 'ok' }
      },
    }),
  ]
}

async function ownDomain(parts: KeyParts, caller: Caller, name: string): Promise<Domain | null> {
  const domain = await parts.domains.byName(name)
  return domain?.accountId === caller.accountId ? domain : null
}

/** @throws NotFound in the form of E9 and E10 */
async function domainOf(parts: KeyParts, caller: Caller, name: string): Promise<Domain> {
  const domain = await ownDomain(parts, caller, name)
  if (!domain) throw new NotFound('domain not found', { form: 'Description' })
  return domain
}

const securityOf = ({ store }: KeyParts, domain: Domain) =>
  store.db.selectFrom('sender_security').selectAll().where('domain_id', '=', domain.id).executeTakeFirst()

async function setRotation(
  parts: KeyParts,
  domain: Domain,
  enabled: boolean,
  interval: string | undefined,
): Promise<SenderSecurityRow> {
  if (enabled && parts.targets.dkimZone === null) throw new BadRequest(NO_SENDER_SECURITY)
  const about = { id: domain.id, account_id: domain.accountId, name: domain.name }
  const known = await securityOf(parts, domain)
  const row = known ?? newSecurityRow(about, 'disabled', parts.clock.now())
  const change = {
    rotation_enabled: enabled ? (1 as const) : (0 as const),
    ...(interval !== undefined && { rotation_interval: interval }),
  }
  if (known) {
    await parts.store.db
      .updateTable('sender_security')
      .set(change)
      .where('domain_id', '=', domain.id)
      .execute()
  } else if (enabled) {
    await parts.store.db
      .insertInto('sender_security')
      .values({ ...row, ...change })
      .onConflict((conflict) => conflict.column('domain_id').doUpdateSet(change))
      .execute()
  }
  return { ...row, ...change }
}

/** `row` undefined: it was never switched on, nor was a rotation set. */
function progressView(row: SenderSecurityRow | undefined): Of<typeof KEY_ROTATION> {
  if (row === undefined)
    return {
      ...{ state: 'disabled', active_selector: null, rotation_enabled: false },
      ...{ rotation_interval: DEFAULT_INTERVAL, next_at: null, in_progress: null },
    }
  const rotation = rotationOf(row)
  const isOn = row.rotation_enabled === 1
  const nextMs =
    isOn && row.state === 'enabled' ? row.rotated_at + parseInterval(row.rotation_interval) : null
  return {
    state: securityState(row),
    active_selector: row.active_selector,
    rotation_enabled: isOn,
    rotation_interval: row.rotation_interval,
    next_at: nextMs === null ? null : new Date(nextMs).toISOString(),
    in_progress: rotation && {
      phase: rotation.phase,
      selector: spareSelector(row),
      until: new Date(rotation.phase === 'publishing' ? rotation.readyAt : rotation.until).toISOString(),
    },
  }
}

function rotationView({ targets }: KeyParts, row: SenderSecurityRow): Of<typeof ROTATION_DOMAIN> {
  const zone = targets.dkimZone
  const records =
    zone === null || row.state === 'disabled'
      ? []
      : MANAGED_SELECTORS.map((selector) => ({
          name: dkimName(selector, row.domain_name),
          type: 'CNAME' as const,
          identifier: 'DKIM' as const,
          value: dkimName(selector, `${row.sid}.${zone}`),
          comment: 'Customer DKIM CNAME Record',
        }))
  return {
    id: row.domain_id,
    account_id: row.account_id,
    sid: row.sid,
    name: row.domain_name,
    state: securityState(row),
    ...(row.active_selector && { active_selector: row.active_selector }),
    rotation_enabled: row.rotation_enabled === 1 ? 'true' : 'false',
    rotation_interval: row.rotation_interval,
    records,
  }
}
