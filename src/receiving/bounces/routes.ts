/** Bounce classification over HTTP (bounce-classification.md sections 1 and 3). */

import { BadRequest, Gone, NotFound } from '../../base/process/errors.ts'
import { formatRfc2822 } from '../../base/time/dates.ts'
import { invalidFormat, quotable } from '../../base/values.ts'
import type { Core } from '../../core.ts'
import { type Operation, operationsOf } from '../../platform/http/operation.ts'
import {
  flagParam,
  given,
  type InputOf,
  limitParam,
  parsedParam,
  skipParam,
  wordParam,
} from '../../platform/http/request/inputs.ts'
import type { Params } from '../../platform/http/request/params.ts'
import type { Caller } from '../../platform/http/rights/auth.ts'
import { readMetrics } from './metrics.ts'
import { readMetricsQuery } from './metrics-query.ts'
import { type Category, entityName, type Rule, type RuleSet, UNCLASSIFIED } from './rules.ts'
import {
  BOUNCE_GROUPS,
  DOMAIN_BOUNCES,
  ENTITIES,
  ENTITY_BOUNCES,
  METRICS_BODY,
  METRICS_PAGE,
  RULE_BOUNCES,
  RULE_GROUP,
  RULES,
  UNKNOWN_REPLIES,
} from './shapes.ts'
import {
  accountsOf,
  createStatistics,
  GROUPS,
  type Group,
  type Scope,
  type Statistics,
} from './statistics.ts'
import { UNKNOWN_DAYS, unknownReplies } from './unknown-replies.ts'

interface BounceRouteParts extends Pick<Core, 'store' | 'domains' | 'clock'> {
  rules: RuleSet
  /** How long classified failures are kept. */
  keepMs: number
}

const PATH = '/v1/bounce-classification'
/** Metrics v2 replaces those that are deprecated (rule 8). */
const api = operationsOf({ tag: 'Bounce Classification', auth: { area: 'alerts' }, rateLimit: 'analytics' })

const INCLUDE = { include_subaccounts: flagParam('Those of subaccounts too', { default: false }) }

/** The category in words (section 4). */
const SHORT_EXPLANATIONS: Readonly<Record<Category, string>> = {
  BOUNCE: 'The mailbox does not exist or is switched off',
  ESPBLOCK: 'Refused by reputation or policy',
  BLACKLISTED: 'A blocklist names the sender',
  CONTENT: 'The message itself was refused',
  AUTHENTICATION: 'SPF, DKIM, DMARC or reverse DNS',
  RATELIMIT: 'Slowed down',
  GREYLISTED: 'Delay of unknown senders',
  MAILBOXFULL: 'The mailbox has no space, or is closed for a time',
  TECHNICAL: 'Network, DNS, TLS or size',
  GENERIC: 'Not classified',
}

export function bounceRoutes(parts: BounceRouteParts): Operation[] {
  const statistics = createStatistics(parts.store)
  return [
    ...overviewRoutes(parts, statistics),
    ...domainRoutes(parts, statistics),
    ...configRoutes(parts, statistics),
    metricsRoute(parts),
    unknownRepliesRoute(parts),
  ]
}

const scopeOf = (caller: Caller, asked: InputOf<typeof INCLUDE>): Scope => ({
  accountId: caller.accountId,
  includeSubaccounts: asked.include_subaccounts,
})

/** A rule that is in no file any more has only its id. */
const ruleOf = ({ byId }: RuleSet, id: string): Rule => byId.get(id) ?? { ...UNCLASSIFIED, id }

const bounced = (total: number) => ({ bounced: { total } })

function overviewRoutes({ clock, rules }: BounceRouteParts, statistics: Statistics): Operation[] {
  return [
    api.get(`${PATH}/stats`, {
      deprecated: true,
      id: 'listBounceStatistics',
      summary: 'Final failures of the last 7 days, grouped',
      params: {
        group: parsedParam('What to group by; default domain.name, entity-id, rule-id', groupsOf, {
          repeated: true,
          values: GROUPS,
        }),
        limit: limitParam(100, 1000),
        ...INCLUDE,
      },
      answers: { 200: BOUNCE_GROUPS },
      async handler({ input, caller }) {
        const { group: groups, limit, ...scope } = input()
        const begun = clock.monotonic()
        const found = await statistics.grouped(scopeOf(caller, scope), groups, limit, clock.now())
        const items = found.map(({ values, total }) => groupStat(rules, values, total))
        const ms = Math.round(clock.monotonic() - begun)
        return { items: items.length > 0 ? items : null, _duration: ms === 0 ? '0s' : `${ms}ms` }
      },
    }),
    api.get(`${PATH}/domains`, {
      deprecated: true,
      id: 'listBouncesPerDomain',
      summary: 'Final failures of the last 7 days per domain',
      params: {
        limit: limitParam(100, 1000),
        skip: skipParam(),
        query: wordParam('One domain: `domain.name:example.com`', queriedDomain),
        ...INCLUDE,
      },
      answers: { 200: DOMAIN_BOUNCES },
      async handler({ input, caller }) {
        const { limit, skip, query: domain = null, ...scope } = input()
        const page = { limit, skip, domain }
        const found = await statistics.perDomain(scopeOf(caller, scope), page, clock.now())
        const items = found.items.map(({ name, total }) => ({ domain: { name }, ...bounced(total) }))
        return { items, total: found.total, req: {} }
      },
    }),
  ]
}

/** @throws BadRequest `invalid group: <value>` */
function groupsOf(params: Params, name: string): Group[] {
  const asked = params.texts(name).map((value) => {
    const group = GROUPS.find((known) => known === value)
    if (!group) throw new BadRequest(`invalid group: ${quotable(value)}`)
    return group
  })
  return asked.length > 0 ? [...new Set(asked)] : ['domain.name', 'entity-id', 'rule-id']
}

function groupStat(rules: RuleSet, values: Partial<Record<Group, string>>, total: number) {
  const rule = values['rule-id']
  return {
    ...(values['subaccount.id'] !== undefined && { subaccount: { id: values['subaccount.id'] } }),
    ...(values['domain.name'] !== undefined && { domain: { name: values['domain.name'] } }),
    ...(rule !== undefined && {
      'rule-id': rule,
      'short-explanation': SHORT_EXPLANATIONS[ruleOf(rules, rule).category],
    }),
    ...(values['entity-id'] !== undefined && { 'entity-id': values['entity-id'] }),
    ...bounced(total),
  }
}

function queriedDomain(query: string): string {
  const name = /^\s*domain\.name:\s*(\S+)\s*$/.exec(query)?.[1]
  if (name === undefined) throw invalidFormat('query', query)
  return name.toLowerCase()
}

function domainRoutes(parts: BounceRouteParts, statistics: Statistics): Operation[] {
  const { clock, rules } = parts
  return [
    api.get(`${PATH}/domains/{domain}/entities`, {
      deprecated: true,
      id: 'listBouncesPerEntity',
      summary: 'Final failures of a domain per receiver or list',
      params: INCLUDE,
      answers: { 200: ENTITY_BOUNCES },
      async handler({ input, path, caller }) {
        const scope = scopeOf(caller, input())
        const domain = await visibleDomain(parts, scope, path.domain)
        const found = await statistics.perEntity(scope, domain, clock.now())
        return {
          items: found.map(({ entity, total }) => ({
            'entity-id': entity,
            'entity-name': entityName(entity),
            ...bounced(total),
          })),
        }
      },
    }),
    api.get(`${PATH}/domains/{domain}/entities/{entity_id}/rules`, {
      deprecated: true,
      id: 'listBouncesPerRule',
      summary: 'Final failures of a domain at one receiver or list per rule',
      params: INCLUDE,
      answers: { 200: RULE_BOUNCES },
      async handler({ input, path, caller }) {
        const scope = scopeOf(caller, input())
        const domain = await visibleDomain(parts, scope, path.domain)
        const found = await statistics.perRule(scope, domain, path.entity_id, clock.now())
        const samples = found.length > 0 ? await statistics.newestSamples(scope, domain) : null
        return {
          items: found.map(({ ruleId, category, total }) => {
            const { explanation, samples: known } = ruleOf(rules, ruleId)
            return {
              'rule-id': ruleId,
              category,
              // Figures cover final failures only.
              severity: 'PERMANENT' as const,
              ...given({ 'sample-text': samples?.get(ruleId) ?? known[0] }),
              explanation,
              ...bounced(total),
            }
          }),
        }
      },
    }),
    api.get(`${PATH}/domains/{domain}/events`, {
      deprecated: true,
      id: 'listBounceEvents',
      summary: 'Classified events of a domain; replaced by the logs',
      answers: { 410: 'Always' },
      async handler() {
        throw new Gone('Deprecated: use POST /v1/analytics/logs')
      },
    }),
  ]
}

/** @throws NotFound unless the domain belongs to an account of the scope */
async function visibleDomain({ store, domains }: BounceRouteParts, scope: Scope, name: string) {
  const domain = await domains.byName(name)
  const own = domain?.accountId === scope.accountId
  const visible =
    own ||
    (domain !== null &&
      scope.includeSubaccounts &&
      (await accountsOf(store.db, scope).where('accounts.id', '=', domain.accountId).executeTakeFirst()) !==
        undefined)
  if (!domain || !visible) throw new NotFound('Domain not found')
  return domain.name
}

function configRoutes({ rules }: BounceRouteParts, statistics: Statistics): Operation[] {
  return [
    api.get(`${PATH}/config/entities`, {
      deprecated: true,
      id: 'listBounceEntities',
      summary: 'Who can refuse: receivers and lists',
      answers: { 200: ENTITIES },
      async handler() {
        const ids = new Set(allRules(rules).map(({ entity }) => entity))
        return Object.fromEntries([...ids].sort().map((id) => [id, { name: entityName(id) }]))
      },
    }),
    api.get(`${PATH}/config/rules`, {
      deprecated: true,
      id: 'listBounceRules',
      summary: 'The rules by which failures are classified',
      answers: { 200: RULES },
      async handler({ caller }) {
        const scope = { accountId: caller.accountId, includeSubaccounts: false }
        const samples = await statistics.newestSamples(scope)
        return Object.fromEntries(allRules(rules).map((rule) => [rule.id, ruleView(rule, samples)]))
      },
    }),
    api.get('/v2/bounce-classification/config/groups/{group_id}', {
      id: 'readBounceGroup',
      summary: 'The rule that group-id of the metrics names',
      answers: { 200: RULE_GROUP, 404: 'No rule has this id' },
      async handler({ path: { group_id: id }, caller }) {
        const rule = allRules(rules).find((one) => one.id === id)
        if (rule === undefined) throw new NotFound('Group not found')
        const samples = await statistics.newestSamples({
          accountId: caller.accountId,
          includeSubaccounts: false,
        })
        return { id, ...ruleView(rule, samples), 'entity-name': entityName(rule.entity) }
      },
    }),
  ]
}

const ruleView = (
  { id, entity, category, explanation, samples: known }: Rule,
  samples: ReadonlyMap<string, string>,
) => ({
  entity_id: entity,
  class: category,
  ...given({ 'sample-text': samples.get(id) ?? known[0] }),
  explanation,
  'short-explanation': SHORT_EXPLANATIONS[category],
})

const allRules = ({ rules }: RuleSet): Rule[] => [...rules, UNCLASSIFIED]

function metricsRoute({ store, clock, rules, keepMs }: BounceRouteParts): Operation {
  return api.post('/v2/bounce-classification/metrics', {
    auth: { area: 'alerts', access: 'read' },
    id: 'readBounceMetrics',
    summary: 'Metrics over classified failures',
    body: METRICS_BODY,
    answers: { 200: METRICS_PAGE },
    async handler({ params, caller }) {
      const query = readMetricsQuery(params.json(), clock.now(), keepMs)
      const scope = { accountId: caller.accountId, includeSubaccounts: query.includeSubaccounts }
      const { items, total } = await readMetrics(store, rules, scope, query)
      const { resolution, duration, dimensions, sort, skip, limit } = query
      return {
        start: formatRfc2822(new Date(query.start)),
        end: formatRfc2822(new Date(query.end)),
        resolution,
        ...(duration !== null && { duration }),
        dimensions,
        pagination: { sort: sort.asked, skip, limit, total },
        items,
      }
    },
  })
}

function unknownRepliesRoute({ store, clock, rules }: BounceRouteParts): Operation {
  return api.get('/sendwright/v1/unknown-replies', {
    id: 'listUnknownReplies',
    tag: 'Metrics',
    summary: 'The ten most frequent replies of the last 7 days that no rule knows',
    description: 'For the first account only: of the mail of all accounts.',
    auth: { area: 'account', access: 'read', only: 'first' },
    answers: { 200: UNKNOWN_REPLIES },
    async handler() {
      const { replies, partial } = await unknownReplies(store, rules, clock.now())
      const items = replies.map(({ text, count, sample, lastAt }) => ({
        text,
        count,
        sample,
        last_at: new Date(lastAt).toISOString(),
      }))
      return { days: UNKNOWN_DAYS, rules: rules.version, items, ...(partial && { partial }) }
    },
  })
}
