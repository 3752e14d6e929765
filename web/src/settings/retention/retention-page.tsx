/** What is kept, and for how long. Calls /sendwright/v1/retention, or that of one domain. */
import { Alert, Button, Skeleton, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { CopyWordsButton } from '../../base/copy-button.tsx'
import { useMay } from '../../session.ts'
import { DomainChoice } from '../../shared/forms/domain-choice.tsx'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { useForm } from '../../shared/forms/use-form.ts'
import { BUTTONS, type Column } from '../../shared/page/data-table.tsx'
import { ListPage } from '../../shared/page/list-page.tsx'
import { notify } from '../../shared/page/notices.tsx'
import { Panel } from '../../shared/page/page.tsx'
import { Failure } from '../../shared/page/states.tsx'
import { TEXT as SHARED } from '../text.ts'
import { policyQuery, RETENTION_KEY, type Retention, retentionQuery, setRetention } from './retention-api.ts'
import { keptWords, TEXT } from './text.ts'
import '../settings.css'

const route = getRouteApi('/settings/retention')
const KINDS = 20 // about as many are listed

export default function RetentionPage() {
  const { domain = '' } = route.useSearch()
  const navigate = useNavigate({ from: '/settings/retention' })
  const mayChange = useMay({ area: 'account', access: 'write' })
  const list = useQuery(retentionQuery(domain))
  const [edited, setEdited] = useState<Retention>()
  const columns: Column<Retention>[] = [
    { header: TEXT.columns.what, cell: (item) => <What item={item} /> },
    { header: TEXT.columns.kept, width: '20%', cell: (item) => <strong>{keptWords(item)}</strong> },
    { header: TEXT.columns.source, width: '24%', cell: (item) => <Source item={item} /> },
    ...(mayChange
      ? [
          {
            ...BUTTONS,
            cell: (item: Retention) =>
              item.max_days !== null && (
                <Button
                  variant="default"
                  size="xs"
                  aria-label={TEXT.changeOf(item.title)}
                  onClick={() => setEdited(item)}
                >
                  {TEXT.change}
                </Button>
              ),
          },
        ]
      : []),
  ]
  return (
    <ListPage
      title={TEXT.title}
      lead={TEXT.lead}
      back={{ to: '/settings', label: SHARED.title }}
      above={
        <DomainChoice
          value={domain}
          none={TEXT.account}
          onChange={(name) => void navigate({ replace: true, search: name === '' ? {} : { domain: name } })}
        />
      }
      list={list}
      rows={list.data}
      rowKey={({ kind }) => kind}
      columns={columns}
      empty={null}
      expectedRows={KINDS}
    >
      {/* Below what is shorter when it fails. */}
      {!list.isPending && <Policy domain={domain} />}
      {edited && <DaysForm item={edited} domain={domain} onClose={() => setEdited(undefined)} />}
    </ListPage>
  )
}

function What({ item: { title, personal } }: { item: Retention }) {
  return (
    <div>
      <strong className="breakable">{title}</strong>
      <div className="dimmed settings-small">{personal === null ? TEXT.none : TEXT.personal(personal)}</div>
    </div>
  )
}

function Source({ item: { source, setting } }: { item: Retention }) {
  return (
    <div>
      {TEXT.sources[source]}
      {source === 'service' && setting !== null && (
        <div className="dimmed settings-small breakable">{setting}</div>
      )}
    </div>
  )
}

function DaysForm(props: { item: Retention; domain: string; onClose: () => void }) {
  const { item, domain, onClose } = props
  const min = item.min_days ?? 0
  const max = item.max_days ?? 0
  const form = useForm({
    initial: { days: item.own_days === null ? '' : String(item.own_days) },
    send: ({ days }) => setRetention(domain, item.kind, days.trim() === '' ? 'default' : days.trim()),
    changes: RETENTION_KEY,
    onDone() {
      notify({ text: TEXT.saved(item.title) })
      onClose()
    },
  })
  const days = form.values.days.trim()
  const isNumber = /^\d{1,5}$/.test(days)
  const isShorter = isNumber && item.days !== null && Number(days) < item.days
  return (
    <FormWindow
      title={item.title}
      submit={TEXT.save}
      isComplete={days === '' || (isNumber && Number(days) >= min && Number(days) <= max)}
      {...form.window}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.days}
        description={TEXT.range(min, max)}
        inputMode="numeric"
        autoComplete="off"
        {...form.field('days')}
        data-autofocus
      />
      {min === 0 && <Text size="sm">{TEXT.zero}</Text>}
      {isShorter && (
        <Alert color="orange" role="status">
          {TEXT.shorter}
        </Alert>
      )}
    </FormWindow>
  )
}

/** The passage for a privacy policy. */
function Policy({ domain }: { domain: string }) {
  const { data, error, refetch } = useQuery(policyQuery(domain))
  return (
    <Panel title={TEXT.policy} beside={<CopyWordsButton text={data} words={TEXT.copy} />}>
      <Text size="sm" c="dimmed" mb="sm">
        {TEXT.policyWhy}
      </Text>
      {error && <Failure title={TEXT.policy} error={error} retry={refetch} />}
      {data === undefined && !error && <Skeleton height={280} />}
      {data !== undefined && <pre className="settings-passage">{data}</pre>}
    </Panel>
  )
}
