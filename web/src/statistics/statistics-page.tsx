/** Metrics over time and by dimension. Calls POST /v1/analytics/metrics. */
import { Button, NativeSelect, Switch } from '@mantine/core'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import { copyText } from '../base/clipboard.ts'
import { useNow } from '../base/use-now.ts'
import { Icon } from '../look/icons.tsx'
import { useMay } from '../session.ts'
import { METRICS_PATH } from '../shared/charts/metrics-api.ts'
import { floorTo } from '../shared/charts/spans.ts'
import { TAG_OPTIONS } from '../shared/forms/choices.ts'
import { Chooser } from '../shared/forms/chooser.tsx'
import { CsvButton } from '../shared/forms/csv-button.tsx'
import { DayFields } from '../shared/forms/day-fields.tsx'
import { DomainChoice } from '../shared/forms/domain-choice.tsx'
import { notify } from '../shared/page/notices.tsx'
import { Page, PageHeader } from '../shared/page/page.tsx'
import { Classes } from './classes.tsx'
import { Curves } from './curves.tsx'
import { DimensionTable } from './dimension-table.tsx'
import { ShareWindow } from './share-window.tsx'
import {
  type Change,
  PROVIDERS,
  ROWS_MAX,
  SPANS,
  type Span,
  type SpanName,
  type StatisticsSearch,
  spanOf,
  tableQuery,
} from './statistics-search.ts'
import { SHARE_TEXT, SPAN_LABELS, TEXT } from './text.ts'
import { WeekPanel } from './week-panel.tsx'
import './statistics.css'

const route = getRouteApi('/statistics')

export default function StatisticsPage() {
  const search = route.useSearch()
  const navigate = useNavigate({ from: '/statistics' })
  const minute = floorTo(useNow(), 'hour')
  // A new hour is another span; within it the queries stay the same.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the time is read when one of these changes
  const span = useMemo(() => spanOf(search, Date.now()), [search.span, search.from, search.to, minute])
  /** Another view begins at the first row. */
  const change: Change = (changed) => {
    const { at: _, ...kept } = search
    const next = Object.entries({ ...kept, ...changed }).filter(([, value]) => value !== undefined)
    void navigate({ search: Object.fromEntries(next), replace: true })
  }
  const mayShare = useMay({ area: 'events', access: 'write' })
  const setSharing = (share: 'yes' | undefined) => change({ share, at: search.at })
  return (
    <Page wide>
      <PageHeader
        title={TEXT.title}
        lead={TEXT.lead}
        actions={
          <>
            <CopyLink />
            {mayShare && (
              <Button
                variant="default"
                size="sm"
                leftSection={<Icon name="send" size={16} />}
                onClick={() => setSharing('yes')}
              >
                {SHARE_TEXT.share}
              </Button>
            )}
            <CsvButton
              label={TEXT.export}
              path={METRICS_PATH}
              name={fileName(span, search)}
              query={() => tableQuery(span, search, ROWS_MAX)} // all rows of the table, with rates
            />
          </>
        }
      />
      <Filters span={span} search={search} change={change} />
      <Curves span={span} search={search} change={change} />
      <WeekPanel span={span} search={search} change={change} />
      <DimensionTable span={span} search={search} change={change} />
      <Classes span={span} search={search} />
      {mayShare && search.share === 'yes' && (
        <ShareWindow span={span} search={search} onClose={() => setSharing(undefined)} />
      )}
    </Page>
  )
}

function CopyLink() {
  const copy = async () => {
    const isCopied = await copyText(window.location.href)
    notify({ text: isCopied ? TEXT.copied : TEXT.notCopied, tone: isCopied ? 'ok' : 'bad' })
  }
  return (
    <Button
      variant="default"
      size="sm"
      leftSection={<Icon name="link" size={16} />}
      onClick={() => void copy()}
    >
      {TEXT.copyLink}
    </Button>
  )
}

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)
const fileName = ({ startMs, endMs }: Span, { by = 'recipient_provider' }: StatisticsSearch) =>
  `metrics-${by}-${dayOf(startMs)}-${dayOf(endMs)}.csv`

const OWN_SPAN = 'own'

function Filters({ span, search, change }: { span: Span; search: StatisticsSearch; change: Change }) {
  const isOwn = search.from !== undefined && search.to !== undefined
  const chooseSpan = (value: string) => {
    if (value === OWN_SPAN) setDays({})
    else change({ span: value as SpanName, from: undefined, to: undefined })
  }
  /** The days of the span, which become one of its own when one of them is changed. */
  const days = { from: search.from ?? dayOf(span.startMs), to: search.to ?? dayOf(span.endMs) }
  const setDays = (changed: { from?: string | undefined; to?: string | undefined }) => {
    const { from, to } = { ...days, ...changed }
    if (from !== undefined && to !== undefined) change({ span: undefined, from, to })
  }
  return (
    <search className="filter-bar statistics-filters">
      <NativeSelect
        size="sm"
        aria-label={TEXT.span}
        value={isOwn ? OWN_SPAN : (search.span ?? '30d')}
        data={[
          ...SPANS.map((value) => ({ value: value as string, label: SPAN_LABELS[value] })),
          { value: OWN_SPAN, label: TEXT.ownSpan },
        ]}
        onChange={(event) => chooseSpan(event.currentTarget.value)}
      />
      <DayFields {...days} onChange={setDays} />
      <DomainChoice
        label={TEXT.domain}
        none={TEXT.allDomains}
        value={search.domain ?? ''}
        onChange={(domain) => change({ domain: domain || undefined })}
      />
      <NativeSelect
        size="sm"
        aria-label={TEXT.provider}
        value={search.provider ?? ''}
        data={[{ value: '', label: TEXT.allProviders }, ...PROVIDERS]}
        onChange={(event) => change({ provider: event.currentTarget.value || undefined })}
      />
      <Chooser
        label={TEXT.tag}
        none={TEXT.allTags}
        options={TAG_OPTIONS}
        free
        isSearch
        value={search.tag ?? ''}
        onChange={(tag) => change({ tag: tag || undefined })}
      />
      <Switch
        className="statistics-switch"
        label={TEXT.people}
        title={TEXT.peopleWhy}
        checked={search.people === 'yes'}
        onChange={(event) => change({ people: event.currentTarget.checked ? 'yes' : undefined })}
      />
      <Switch
        className="statistics-switch"
        label={TEXT.compare}
        checked={search.compare === 'yes'}
        onChange={(event) => change({ compare: event.currentTarget.checked ? 'yes' : undefined })}
      />
    </search>
  )
}
