import { NativeSelect, Skeleton, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import { Panel } from '../../shared/page/page.tsx'
import { EmptyState, Failure } from '../../shared/page/states.tsx'
import { changedRows, type DiffRow, diffLines } from './line-diff.ts'
import { draftOf, type Template, type Version, type VersionSummary } from './templates-api.ts'
import { versionQuery } from './templates-queries.ts'
import { TEXT } from './text.ts'

const route = getRouteApi('/sending/templates/$name')

/** Two versions side by side, on a phone one above the other. */
export function Compare(props: { template: Template & { versions: VersionSummary[] }; domain: string }) {
  const { template, domain } = props
  const search = route.useSearch()
  const navigate = useNavigate({ from: '/sending/templates/$name' })
  const tags = template.versions.map(({ tag }) => tag)
  const active = template.versions.find((version) => version.active)?.tag
  const left = tags.find((tag) => tag === search.version) ?? active ?? ''
  const right = tags.find((tag) => tag === search.with) ?? tags.findLast((tag) => tag !== left) ?? ''
  const [a, b] = [
    useQuery(versionQuery(domain, template.name, left)),
    useQuery(versionQuery(domain, template.name, right)),
  ]
  if (tags.length < 2)
    return (
      <Panel>
        <EmptyState icon="file" title={TEXT.oneVersion} />
      </Panel>
    )
  const error = a.error ?? b.error
  const choose = (label: string, value: string, name: 'version' | 'with') => (
    <NativeSelect
      size="sm"
      label={label}
      value={value}
      data={tags.map((tag) => ({
        value: tag,
        label: tag === active ? `${tag} (${TEXT.active.toLowerCase()})` : tag,
      }))}
      onChange={(event) => {
        const chosen = event.currentTarget.value
        void navigate({ search: (old) => ({ ...old, [name]: chosen }) })
      }}
    />
  )
  return (
    <>
      <div className="compare-choice">
        {choose(TEXT.left, left, 'version')}
        {choose(TEXT.right, right, 'with')}
      </div>
      {error !== null && <Failure title={TEXT.compare} error={error} />}
      {error === null && (a.data === undefined || b.data === undefined) && <Skeleton height={300} />}
      {a.data && b.data && <Differences left={a.data} right={b.data} />}
    </>
  )
}

/** Headers and content as one text. */
function wholeText(version: Version): string {
  const { content, headers } = draftOf(version)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return [...lines, ...(lines.length > 0 ? [''] : []), content].join('\n')
}

function Differences({ left, right }: { left: Version; right: Version }) {
  const rows = useMemo(() => diffLines(wholeText(left), wholeText(right)), [left, right])
  const changed = changedRows(rows)
  return (
    <Panel title={changed === 0 ? TEXT.sameContent : TEXT.changedLines(changed)} flush>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard */}
      <section className="diff" tabIndex={0} aria-label={TEXT.views.compare}>
        {rows.map((row) => (
          <Row key={`${row.left?.number}/${row.right?.number}`} row={row} />
        ))}
        {rows.length === 0 && (
          <Text c="dimmed" p="md" size="sm">
            –
          </Text>
        )}
      </section>
    </Panel>
  )
}

function Row({ row: { kind, left, right } }: { row: DiffRow }) {
  return (
    <div className="diff-row" data-kind={kind}>
      <Side line={left} mark={kind === 'same' ? undefined : TEXT.onlyLeft} side="left" />
      <Side line={right} mark={kind === 'same' ? undefined : TEXT.onlyRight} side="right" />
    </div>
  )
}

function Side(props: {
  line: { number: number; text: string } | undefined
  /** Said by screen readers, where others see a colour. */
  mark: string | undefined
  side: 'left' | 'right'
}) {
  const { line, mark, side } = props
  return (
    <div className="diff-side" data-side={side} data-empty={line === undefined || undefined}>
      <span className="diff-number">{line?.number}</span>
      {line && mark && (
        <>
          <span className="diff-sign" aria-hidden="true">
            {side === 'left' ? '−' : '+'}
          </span>
          <span className="visually-hidden">{mark}: </span>
        </>
      )}
      <span className="diff-text">{line?.text}</span>
    </div>
  )
}
