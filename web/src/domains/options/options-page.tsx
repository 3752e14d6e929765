/**
 * Options of a domain: tracking, TLS, sending defaults. Calls PUT /v4/domains/:name, /v3/domains/:name/tracking and
 * /connection.
 */
import { Button, Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { Panel } from '../../shared/page/page.tsx'
import { Failure } from '../../shared/page/states.tsx'
import { DomainFrame } from '../domain-frame.tsx'
import type { DomainDetails } from '../domains-api.ts'
import type { OptionsSearch } from '../domains-search.ts'
import { OPTIONS_TEXT as TEXT } from '../text.ts'
import { FootersForm, HostForm, MessagesForm, TopicsForm } from './option-forms.tsx'
import {
  policyQuery,
  setConnection,
  setTopics,
  setTracking,
  topicsQuery,
  trackingQuery,
  updateDomain,
} from './options-api.ts'
import { ChoiceRow, ShownRow, SwitchRow, useMayChange } from './rows.tsx'
import { TrackingHost } from './tracking-host.tsx'

const route = getRouteApi('/domains/$name/settings')

/** Tracking, connection and messages of a domain. */
export default function OptionsPage() {
  const { name } = route.useParams()
  return (
    <DomainFrame name={name} title={TEXT.title} lead={() => TEXT.lead(name)}>
      {(domain) => <Options domain={domain} />}
    </DomainFrame>
  )
}

function Options({ domain }: { domain: DomainDetails }) {
  const { name } = route.useParams()
  const { edit } = route.useSearch()
  const mayChange = useMayChange()
  const navigate = useNavigate()
  const open = (next: OptionsSearch['edit']) =>
    void navigate({
      to: '/domains/$name/settings',
      params: { name },
      search: next === undefined ? {} : { edit: next },
      replace: true,
    })
  const button = (form: NonNullable<OptionsSearch['edit']>, label: string) =>
    mayChange && (
      <Button variant="default" size="xs" aria-label={label} onClick={() => open(form)}>
        {TEXT.change}
      </Button>
    )
  const close = () => open(undefined)
  return (
    <>
      <TrackingPanel
        name={name}
        footersButton={button('footers', TEXT.footersChange)}
        isEditing={mayChange && edit === 'footers'}
        onClose={close}
      />
      <Topics
        name={name}
        button={button('topics', TEXT.topicsChange)}
        isEditing={mayChange && edit === 'topics'}
        onClose={close}
      />
      <TrackingHost domain={domain} button={button('host', TEXT.hostChange)} />
      <Connection domain={domain} />
      <Policy name={name} />
      <Complaints domain={domain} />
      <Messages domain={domain} button={button('messages', TEXT.messagesChange)} />
      {mayChange && edit === 'host' && <HostForm domain={domain} onClose={close} />}
      {mayChange && edit === 'messages' && <MessagesForm domain={domain} onClose={close} />}
    </>
  )
}

function TrackingPanel(props: {
  name: string
  footersButton: React.ReactNode
  isEditing: boolean
  onClose: () => void
}) {
  const { name, footersButton, isEditing, onClose } = props
  const { data, error, refetch } = useQuery(trackingQuery(name))
  const save = (kind: 'open' | 'click' | 'unsubscribe', field: string) => (value: boolean | string) =>
    setTracking(name, kind, { [field]: typeof value === 'string' ? value : value ? 'yes' : 'no' })
  if (data === undefined)
    return error ? (
      <Failure title={TEXT.trackingUnreadable} error={error} retry={refetch} />
    ) : (
      <Skeleton height={425} role="status" aria-label={TEXT.tracking} />
    )
  const { open, click, unsubscribe } = data
  return (
    <Panel title={TEXT.tracking} flush>
      <SwitchRow label={TEXT.opens} why={TEXT.opensWhy} value={open.active} save={save('open', 'active')} />
      <SwitchRow
        label={TEXT.opensTop}
        why={TEXT.opensTopWhy}
        value={open.place_at_the_top}
        save={save('open', 'place_at_the_top')}
      />
      <ChoiceRow
        label={TEXT.clicks}
        why={TEXT.clicksWhy}
        options={TEXT.clickModes}
        value={click.htmlonly ? 'htmlonly' : click.active ? 'yes' : 'no'}
        save={save('click', 'active')}
      />
      <SwitchRow
        label={TEXT.unsubscribe}
        why={TEXT.unsubscribeWhy}
        value={unsubscribe.active}
        save={save('unsubscribe', 'active')}
      />
      <SwitchRow
        label={TEXT.onBulk}
        why={TEXT.onBulkWhy}
        value={unsubscribe.on_bulk !== false}
        save={save('unsubscribe', 'on_bulk')}
      />
      <ShownRow label={TEXT.footers} why={TEXT.footerHelp} value={footersButton} />
      {isEditing && <FootersForm name={name} footers={unsubscribe} onClose={onClose} />}
    </Panel>
  )
}

function Topics(props: { name: string; button: React.ReactNode; isEditing: boolean; onClose: () => void }) {
  const { name, button, isEditing, onClose } = props
  const { data, error, refetch } = useQuery(topicsQuery(name))
  if (data === undefined)
    return error ? (
      <Failure title={TEXT.topicsUnreadable} error={error} retry={refetch} />
    ) : (
      <Skeleton height={180} role="status" aria-label={TEXT.topics} />
    )
  const titles = (items: readonly { title: string }[]) =>
    items.map(({ title }) => title).join(', ') || TEXT.topicsNone
  return (
    <Panel title={TEXT.topics} beside={button} flush>
      <SwitchRow
        label={TEXT.topicsPage}
        why={TEXT.topicsPageWhy}
        value={data.active}
        save={(value) => setTopics(name, { active: value ? 'yes' : 'no' })}
      />
      <ShownRow label={TEXT.topicTags} value={titles(data.topics)} />
      <ShownRow label={TEXT.topicLists} why={TEXT.topicListsWhy} value={titles(data.lists)} />
      <ShownRow label={TEXT.pageTemplate} value={data.page_template ?? TEXT.topicsNone} />
      {isEditing && <TopicsForm name={name} topics={data} onClose={onClose} />}
    </Panel>
  )
}

function Connection({ domain: { name, require_tls, skip_verification } }: { domain: DomainDetails }) {
  const save = (field: string) => (value: boolean) => setConnection(name, { [field]: String(value) })
  return (
    <Panel title={TEXT.connection} flush>
      <SwitchRow
        label={TEXT.requireTls}
        why={TEXT.requireTlsWhy}
        value={require_tls}
        save={save('require_tls')}
      />
      <SwitchRow
        label={TEXT.skipVerification}
        why={TEXT.skipVerificationWhy}
        value={skip_verification}
        save={save('skip_verification')}
      />
    </Panel>
  )
}

function Policy({ name }: { name: string }) {
  const { data, error, refetch } = useQuery(policyQuery(name))
  if (data === undefined)
    return error ? (
      <Failure title={TEXT.policyUnreadable} error={error} retry={refetch} />
    ) : (
      <Skeleton height={120} role="status" aria-label={TEXT.policy} />
    )
  const records = [data.host_record, data.policy_record, data.mx_records]
  const certificate = TEXT.certificateStates[data.certificate ?? 'none'] ?? data.certificate
  return (
    <Panel title={TEXT.policy} flush>
      <ChoiceRow
        label={TEXT.policyMode}
        why={TEXT.policyWhy}
        options={TEXT.policyModes}
        value={data.mode}
        save={(mta_sts) => updateDomain(name, { mta_sts })}
      />
      {data.mode !== 'off' && (
        <>
          <ShownRow label={TEXT.policyUrl} value={data.url} />
          <ShownRow
            label={TEXT.policyRecords}
            value={records.every((one) => one === 'valid') ? TEXT.recordValid : TEXT.recordUnknown}
          />
          <ShownRow label={TEXT.certificate} value={data.certificate_error ?? certificate} />
        </>
      )}
    </Panel>
  )
}

function Complaints({ domain: { name, cfbl_address, feedback_id } }: { domain: DomainDetails }) {
  const save = (field: string) => (value: boolean) => updateDomain(name, { [field]: String(value) })
  return (
    <Panel title={TEXT.complaints} flush>
      <SwitchRow
        label={TEXT.cfblAddress}
        why={TEXT.cfblAddressWhy}
        value={cfbl_address}
        save={save('cfbl_address')}
      />
      <SwitchRow
        label={TEXT.feedbackId}
        why={TEXT.feedbackIdWhy}
        value={feedback_id}
        save={save('feedback_id')}
      />
    </Panel>
  )
}

const SECONDS_PER_HOUR = 3600

function Messages({ domain, button }: { domain: DomainDetails; button: React.ReactNode }) {
  const { message_ttl, mailfrom_host, archive_to, send_window, spam_action, wildcard } = domain
  const ttl = message_ttl === 0 ? TEXT.ttlDefault : TEXT.hours(message_ttl / SECONDS_PER_HOUR)
  const spam = TEXT.spamActions.find(([action]) => action === spam_action)?.[1] ?? spam_action
  return (
    <Panel title={TEXT.messages} beside={button} flush>
      <ShownRow label={TEXT.ttl} value={ttl} />
      <ShownRow label={TEXT.mailfrom} value={mailfrom_host} />
      <ShownRow label={TEXT.archive} value={archive_to ?? TEXT.archiveNone} />
      <ShownRow label={TEXT.sendWindow} value={send_window ?? TEXT.sendWindowNone} />
      <ShownRow label={TEXT.spam} value={spam} />
      <ShownRow label={TEXT.wildcard} value={wildcard ? TEXT.yes : TEXT.no} />
    </Panel>
  )
}
