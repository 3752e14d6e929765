/**
 * The health of a domain: what other pages say of it, as one list of steps. Calls /v1/maverick-score, /v1/monitoring/domains,
 * /sendwright/v1/accounts/:id/standing and, of the domain, /sender-rules and /reports.
 */
import { queryOptions, useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { getJson } from '../api.ts'
import { valueOrThrow } from '../queries.ts'
import { useMay, useSession } from '../session.ts'
import { HEALTH_KEY, listedQuery, type Part, Parts, rateParts } from '../shared/health/parts.tsx'
import {
  listingSteps,
  rateSteps,
  reportSteps,
  ruleSteps,
  type Step,
  standingSteps,
} from '../shared/health/steps.ts'
import { AREA_TEXT, TEXT } from '../shared/health/text.ts'
import { standingQuery } from '../shared/standing-api.ts'
import { DomainFrame } from './domain-frame.tsx'
import { DOMAINS_KEY } from './domain-queries.ts'
import { readReports, readRules, reportsPath } from './receivers-api.ts'

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

export function DomainHealthPage() {
  const { name } = route.useParams()
  return (
    <DomainFrame name={name} title={TEXT.title} lead={() => TEXT.leadOf(name)}>
      {(domain) => <DomainHealth name={name} isSandbox={domain.type === 'sandbox'} />}
    </DomainFrame>
  )
}

function DomainHealth({ name, isSandbox }: { name: string; isSandbox: boolean }) {
  const { account } = useSession()
  const mayEvents = useMay({ area: 'events' })
  const score = useQuery({ ...scoreQuery(name), enabled: mayEvents })
  const rules = useQuery({ ...rulesQuery(name), enabled: !isSandbox })
  const reports = useQuery({ ...reportsQuery(name), enabled: !isSandbox })
  const listed = useQuery(listedQuery)
  const standing = useQuery(standingQuery(account.id))
  const rates =
    score.data === undefined ? undefined : score.data === null ? [] : rateSteps(score.data.rates, name)
  const found = rules.data && ruleSteps(rules.data, name)
  const isRecord = ({ id }: Step) => /^rule (?:spf|dkim|dmarc)$/.test(id)
  const parts: Part[] = [
    ...(isSandbox
      ? []
      : [
          {
            name: AREA_TEXT.authentication,
            query: rules,
            steps: found && [
              ...found.filter(isRecord),
              ...(reports.data ? reportSteps(reports.data, name) : []),
            ],
          },
          { name: AREA_TEXT.rules, query: rules, steps: found?.filter((step) => !isRecord(step)) },
        ]),
    ...(mayEvents ? rateParts(score, rates) : []),
    {
      name: AREA_TEXT.blocklists,
      query: listed,
      steps:
        listed.data && listingSteps(name, listed.data.find(({ domain }) => domain === name)?.listed ?? []),
    },
    { name: AREA_TEXT.standing, query: standing, steps: standing.data && standingSteps(standing.data, name) },
  ]
  return <Parts score={mayEvents ? score : undefined} parts={parts} />
}
