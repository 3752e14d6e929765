/**
 * The health of the account: what other pages say of it, as one list of steps. Nothing is computed here but their order. Calls
 * /v1/maverick-score, /v1/monitoring/domains, /v4/domains and /sendwright/v1/accounts/:id/standing.
 */
import { queryOptions, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { getJson } from '../api.ts'
import type { HealthScore } from '../api-types.ts'
import { valueOrThrow } from '../queries.ts'
import { useMay, useSession } from '../session.ts'
import { HEALTH_KEY, listedQuery, type Part, Parts, rateParts } from '../shared/health/parts.tsx'
import { domainSteps, standingSteps } from '../shared/health/steps.ts'
import { AREA_TEXT, TEXT } from '../shared/health/text.ts'
import { type Column, DataTable } from '../shared/page/data-table.tsx'
import { Page, PageHeader, Panel } from '../shared/page/page.tsx'
import { EmptyState } from '../shared/page/states.tsx'
import { standingQuery } from '../shared/standing-api.ts'

const DOMAINS_MAX = 100

const totalQuery = queryOptions({
  queryKey: [HEALTH_KEY, 'total'],
  queryFn: async ({ signal }) =>
    valueOrThrow(await getJson('/v1/maverick-score/total?include_subaccounts=no', signal)),
})

const byDomainQuery = queryOptions({
  queryKey: [HEALTH_KEY, 'domains'],
  queryFn: async ({ signal }) =>
    valueOrThrow(
      await getJson(
        `/v1/maverick-score/grouped?group=domain&sort=score:asc&limit=${DOMAINS_MAX}&include_subaccounts=no`,
        signal,
      ),
    ).items,
})

const unverifiedQuery = queryOptions({
  queryKey: [HEALTH_KEY, 'unverified'],
  queryFn: async ({ signal }) =>
    valueOrThrow(await getJson(`/v4/domains?state=unverified&limit=${DOMAINS_MAX}`, signal)).items,
})

export default function HealthPage() {
  const { account } = useSession()
  const mayEvents = useMay({ area: 'events' })
  const total = useQuery({ ...totalQuery, enabled: mayEvents })
  const byDomain = useQuery({ ...byDomainQuery, enabled: mayEvents })
  const domains = useQuery(unverifiedQuery)
  const listed = useQuery(listedQuery)
  const standing = useQuery(standingQuery(account.id))
  const unverified = domains.data && domainSteps(domains.data, [])
  const parts: Part[] = [
    { name: AREA_TEXT.authentication, query: domains, steps: unverified },
    ...(mayEvents ? rateParts(total, total.data) : []),
    {
      name: AREA_TEXT.blocklists,
      query: listed,
      steps: listed.data && domainSteps([], listed.data),
      isKnown: listed.data?.some(({ state }) => state !== 'unknown') === true,
    },
    { name: AREA_TEXT.standing, query: standing, steps: standing.data && standingSteps(standing.data) },
  ]
  return (
    <Page>
      <PageHeader title={TEXT.title} lead={TEXT.lead} back={{ to: '/overview', label: TEXT.overview }} />
      <Parts score={mayEvents ? total : undefined} parts={parts} {...(mayEvents && { also: byDomain })}>
        {mayEvents && (
          <Panel title={TEXT.domains} flush>
            <DataTable
              label={TEXT.domains}
              columns={DOMAIN_COLUMNS}
              rows={byDomain.data?.map((row) => ({
                ...row,
                state: listed.data?.find(({ domain }) => domain === row.group_key)?.state,
              }))}
              rowKey={({ group_key }) => group_key}
              error={byDomain.error}
              retry={byDomain.refetch}
              empty={<EmptyState icon="globe" title={TEXT.noMail} />}
              expectedRows={3}
            />
          </Panel>
        )}
      </Parts>
    </Page>
  )
}

type DomainRow = HealthScore & { group_key: string; state: keyof typeof TEXT.states | undefined }

const DOMAIN_COLUMNS: Column<DomainRow>[] = [
  {
    header: TEXT.domain,
    cell: ({ group_key: name }) => (
      <Link to="/domains/$name/health" params={{ name }} className="row-link breakable">
        {name}
      </Link>
    ),
  },
  { header: TEXT.points, align: 'end', cell: ({ score }) => score },
  { header: TEXT.blocklists, cell: ({ state }) => TEXT.states[state ?? 'unknown'] },
]
