/**
 * The health of a domain: what other pages say of it, as one list of steps. Calls /v1/maverick-score, /v1/monitoring/domains,
 * /sendwright/v1/accounts/:id/standing and, of the domain, /sender-rules and /reports.
 */
import { queryOptions, useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { getJson } from '../api.ts'
import type { SenderRuleFinding, SenderRules } from '../api-types.ts'
import { valueOrThrow } from '../queries.ts'
import { useMay, useSession } from '../session.ts'
import { HEALTH_KEY, listedQuery, type Part, Parts, rateParts } from '../shared/health/parts.tsx'
import {
  domainSteps,
  listingSteps,
  reportSteps,
  ruleSteps,
  type Step,
  standingSteps,
} from '../shared/health/steps.ts'
import { AREA_TEXT, TEXT } from '../shared/health/text.ts'
import { standingQuery } from '../shared/standing-api.ts'
import { DomainFrame } from './domain-frame.tsx'
import { DOMAINS_KEY } from './domain-queries.ts'
import type { DomainDetails } from './domains-api.ts'
import { readReports, readRules, reportsPath } from './receivers/receivers-api.ts'

const scoreQuery = (name: string) =>
  queryOptions({
    queryKey: [HEALTH_KEY, 'domain', name],
    queryFn: async ({ signal }) => {
      const term = encodeURIComponent(`domain:${name}`)
      const path = `/v1/maverick-score/grouped?group=domain&term=${term}&include_subaccounts=no` as const
      return valueOrThrow(await getJson(path, signal)).items[0] ?? null
    },
  })

const rulesQuery = (name: string) =>
  queryOptions({
    queryKey: [DOMAINS_KEY, 'rules', name],
    queryFn: async ({ signal }) => valueOrThrow(await readRules(name, signal)),
  })

const reportsQuery = (name: string) =>
  queryOptions({
    queryKey: [DOMAINS_KEY, 'reports', reportsPath(name, 'dmarc')],
    queryFn: async ({ signal }) => valueOrThrow(await readReports(reportsPath(name, 'dmarc'), signal)),
  })

const route = getRouteApi('/domains/$name/health')

export default function DomainHealthPage() {
  const { name } = route.useParams()
  return (
    <DomainFrame name={name} title={TEXT.title} lead={() => TEXT.leadOf(name)}>
      {(domain) => <DomainHealth domain={domain} />}
    </DomainFrame>
  )
}

function DomainHealth({ domain }: { domain: DomainDetails }) {
  const { name } = domain
  const isSandbox = domain.type === 'sandbox'
  const { account } = useSession()
  const mayEvents = useMay({ area: 'events' })
  const score = useQuery({ ...scoreQuery(name), enabled: mayEvents })
  const rules = useQuery({ ...rulesQuery(name), enabled: !isSandbox })
  const reports = useQuery({ ...reportsQuery(name), enabled: !isSandbox })
  const listed = useQuery(listedQuery)
  const standing = useQuery(standingQuery(account.id))
  const found = rules.data && ruleSteps(rules.data, name)
  const isRecord = ({ id }: Step) => RECORDS.some((rule) => id === `rule ${rule}`)
  const health = listed.data?.find((one) => one.domain === name)
  const parts: Part[] = [
    ...(isSandbox
      ? []
      : [
          {
            name: AREA_TEXT.authentication,
            query: rules,
            isKnown: isJudged(rules.data, RECORDS),
            steps: found && [
              ...domainSteps([domain], []),
              ...found.filter(isRecord),
              ...(reports.data ? reportSteps(reports.data, name) : []),
            ],
          },
          {
            name: AREA_TEXT.rules,
            query: rules,
            isKnown: isJudged(rules.data, OTHER_RULES),
            steps: found?.filter((step) => !isRecord(step)),
          },
        ]),
    ...(mayEvents ? rateParts(score, score.data, name) : []),
    {
      name: AREA_TEXT.blocklists,
      query: listed,
      isKnown: health !== undefined && health.state !== 'unknown',
      steps: listed.data && listingSteps(name, health?.listed ?? []),
    },
    { name: AREA_TEXT.standing, query: standing, steps: standing.data && standingSteps(standing.data, name) },
  ]
  return <Parts score={mayEvents ? score : undefined} parts={parts} />
}

const RECORDS = ['spf', 'dkim', 'dmarc'] as const
const OTHER_RULES = ['one-click-unsubscribe', 'reply-address', 'spam-rate', 'list-hygiene'] as const

/** Whether something is known about each of these rules. */
const isJudged = (judged: SenderRules | undefined, names: readonly SenderRuleFinding['rule'][]) =>
  judged?.rules.every(({ rule, passed }) => passed !== null || !names.includes(rule)) === true
