/** Webhooks of the account and of a domain. Calls /v1/webhooks and /v3/domains/:domain/webhooks. */
import { Button, Group, Text, TextInput } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useMay } from '../session.ts'
import { AddButton } from '../shared/forms/add-button.tsx'
import { domainOptions } from '../shared/forms/choices.ts'
import { FormWindow } from '../shared/forms/form-window.tsx'
import { useSending } from '../shared/forms/use-sending.ts'
import { BUTTONS, type Column, DataTable } from '../shared/page/data-table.tsx'
import { FilterBar } from '../shared/page/filter-bar.tsx'
import { notify } from '../shared/page/notices.tsx'
import { Page, PageHeader, Panel } from '../shared/page/page.tsx'
import { EmptyState } from '../shared/page/states.tsx'
import { EVENT_WORDS, eventWords, TEXT } from './text.ts'
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  EVENT_TYPES,
  testWebhook,
  WEBHOOKS_KEY,
  type Webhook,
  webhooksQuery,
} from './webhooks-api.ts'
import type { WebhooksSearch } from './webhooks-search.ts'
import './webhooks.css'

const route = getRouteApi('/webhooks')

export default function WebhooksPage() {
  const { domain, add, edit } = route.useSearch()
  const navigate = useNavigate()
  const mayChange = useMay({ area: 'domains', access: 'write' })
  const list = useQuery(webhooksQuery(domain))
  const of = domain === undefined ? {} : { domain }
  const go = (search: WebhooksSearch) => void navigate({ to: '/webhooks', replace: true, search })
  const edited = list.data?.find(({ url }) => url === edit)
  const button = mayChange && <AddButton label={TEXT.add} onClick={() => go({ ...of, add: 'yes' })} />
  const columns: Column<Webhook>[] = [
    {
      header: TEXT.url,
      cell: ({ url }) => (
        <Link to="/webhooks/attempts" search={{ url }} className="row-link breakable">
          {url}
        </Link>
      ),
    },
    {
      header: TEXT.events,
      cell: ({ types }) => (
        <span className="webhook-types">
          {types.map((type) => (
            <span key={type} className="tag">
              {eventWords(type)}
            </span>
          ))}
        </span>
      ),
    },
    ...(mayChange
      ? [
          {
            ...BUTTONS,
            cell: (webhook: Webhook) => (
              <WebhookButtons
                domain={domain}
                webhook={webhook}
                onEdit={() => go({ ...of, edit: webhook.url })}
              />
            ),
          },
        ]
      : []),
  ]
  return (
    <Page wide>
      <PageHeader title={TEXT.title} lead={TEXT.lead} actions={button} />
      <FilterBar
        fields={[
          {
            name: 'domain',
            kind: 'chooser',
            label: TEXT.whose,
            any: TEXT.account,
            options: domainOptions(),
          },
        ]}
        values={of}
        onChange={(_, value) => go(value === undefined ? {} : { domain: value })}
        onClear={() => go({})}
      >
        <Button
          variant="default"
          size="sm"
          onClick={() => void navigate({ to: '/webhooks/attempts', search: of })}
        >
          {TEXT.attempts}
        </Button>
      </FilterBar>
      <Panel flush>
        <DataTable
          label={TEXT.title}
          columns={columns}
          rows={list.data}
          rowKey={({ url }) => url}
          error={list.error}
          retry={list.refetch}
          expectedRows={3}
          empty={
            <EmptyState icon="hook" title={TEXT.none(domain)} action={button}>
              {TEXT.noneWhy}
            </EmptyState>
          }
        />
      </Panel>
      {mayChange && add === 'yes' && <WebhookForm domain={domain} onClose={() => go(of)} />}
      {mayChange && edited && (
        <WebhookForm key={edited.url} domain={domain} webhook={edited} onClose={() => go(of)} />
      )}
    </Page>
  )
}

function useChanged() {
  const queries = useQueryClient()
  return () => void queries.invalidateQueries({ queryKey: [WEBHOOKS_KEY] })
}

function WebhookButtons(props: { domain: string | undefined; webhook: Webhook; onEdit: () => void }) {
  const { domain, webhook, onEdit } = props
  const { url, types } = webhook
  const changed = useChanged()
  const test = useSending({
    mutationFn: () => testWebhook(domain ?? '', types[0] ?? '', url),
    onSuccess: ({ code, message }) =>
      notify({
        text: TEXT.tested(url, code, message),
        tone: code >= 200 && code < 300 ? 'ok' : 'bad',
      }),
  })
  const removal = useSending({
    mutationFn: () => deleteWebhook(domain, webhook),
    onSuccess() {
      changed()
      const undo = async () => {
        const failure = await createWebhook(domain, webhook).catch((error: Error) => error)
        notify(failure ? { text: failure.message, tone: 'bad' } : { text: TEXT.added })
        changed()
      }
      notify({ text: TEXT.removed, undo: () => void undo() })
    },
  })
  const error = test.error ?? removal.error
  return (
    <>
      <Group gap="xs" justify="flex-end">
        {domain !== undefined && (
          <Button
            variant="default"
            size="xs"
            aria-label={TEXT.testOf(url)}
            loading={test.isPending}
            onClick={() => test.mutate()}
          >
            {TEXT.test}
          </Button>
        )}
        <Button variant="default" size="xs" aria-label={TEXT.changeOf(url)} onClick={onEdit}>
          {TEXT.change}
        </Button>
        <Button
          variant="default"
          size="xs"
          aria-label={TEXT.removeOf(url)}
          loading={removal.isPending}
          onClick={() => removal.mutate()}
        >
          {TEXT.remove}
        </Button>
      </Group>
      {error && (
        <Text size="xs" c="red" role="alert" className="breakable">
          {error.message}
        </Text>
      )}
    </>
  )
}

/** Without `webhook`: adds one. The URL of an existing one stays. */
function WebhookForm(props: { domain: string | undefined; webhook?: Webhook; onClose: () => void }) {
  const { domain, webhook, onClose } = props
  const [url, setUrl] = useState(webhook?.url ?? '')
  const [types, setTypes] = useState<readonly string[]>(webhook?.types ?? ['delivered', 'permanent_fail'])
  const changed = useChanged()
  const saving = useSending({
    mutationFn: () =>
      webhook === undefined
        ? createWebhook(domain, { url: url.trim(), types })
        : changeWebhook(domain, { ...webhook, types }),
    onSuccess() {
      changed()
      notify({ text: webhook === undefined ? TEXT.added : TEXT.saved })
      onClose()
    },
  })
  return (
    <FormWindow
      title={webhook === undefined ? TEXT.add : TEXT.edit}
      submit={webhook === undefined ? TEXT.add : TEXT.save}
      busy={saving.isPending}
      isComplete={url.trim() !== '' && types.length > 0}
      error={saving.error}
      onSubmit={() => saving.mutate()}
      onClose={onClose}
    >
      <Text size="sm" c="dimmed">
        {domain ?? TEXT.account}
      </Text>
      <TextInput
        label={TEXT.url}
        placeholder={TEXT.urlPlaceholder}
        inputMode="url"
        autoCapitalize="none"
        spellCheck={false}
        autoComplete="off"
        readOnly={webhook !== undefined}
        value={url}
        onChange={(event) => {
          saving.reset()
          setUrl(event.currentTarget.value)
        }}
        {...(webhook === undefined && { 'data-autofocus': true })}
      />
      <fieldset className="webhook-choices">
        <legend>{TEXT.events}</legend>
        {EVENT_TYPES.map((type) => (
          <label key={type}>
            <input
              type="checkbox"
              checked={types.includes(type)}
              onChange={(event) => {
                saving.reset()
                const isChosen = event.currentTarget.checked
                setTypes(isChosen ? [...types, type] : types.filter((each) => each !== type))
              }}
            />
            {EVENT_WORDS[type]}
          </label>
        ))}
      </fieldset>
    </FormWindow>
  )
}
