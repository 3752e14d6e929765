/** Windows that change a domain's footers, tracking host, and settings of messages. */
import { NativeSelect, Switch, Textarea, TextInput } from '@mantine/core'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { EXACT, useForm } from '../../shared/forms/use-form.ts'
import { notify } from '../../shared/page/notices.tsx'
import { DOMAINS_KEY } from '../domain-queries.ts'
import type { DomainDetails } from '../domains-api.ts'
import { OPTIONS_TEXT as TEXT } from '../text.ts'
import { type DomainTopics, setTopics, setTracking, type Tracking, updateDomain } from './options-api.ts'

const SECONDS_PER_HOUR = 3600

export function FootersForm(props: { name: string; footers: Tracking['unsubscribe']; onClose: () => void }) {
  const { name, footers, onClose } = props
  const form = useForm({
    initial: { html_footer: footers.html_footer, text_footer: footers.text_footer },
    send: (fields) => setTracking(name, 'unsubscribe', fields),
    changes: DOMAINS_KEY,
    onDone() {
      notify({ text: TEXT.footersSaved })
      onClose()
    },
  })
  return (
    <FormWindow title={TEXT.footers} submit={TEXT.save} isComplete {...form.window} onClose={onClose}>
      <Textarea
        label={TEXT.htmlFooter}
        description={TEXT.footerHelp}
        rows={5}
        {...form.field('html_footer')}
        data-autofocus
      />
      <Textarea label={TEXT.textFooter} rows={5} {...form.field('text_footer')} />
    </FormWindow>
  )
}

/** Lines of `tag = title`. */
export function TopicsForm(props: { name: string; topics: DomainTopics; onClose: () => void }) {
  const { name, topics, onClose } = props
  const form = useForm({
    initial: {
      lines: topics.topics.map(({ tag, title }) => `${tag} = ${title}`).join('\n'),
      page_template: topics.page_template ?? '',
    },
    send: ({ lines, page_template }) =>
      setTopics(name, { topics: JSON.stringify(topicsOf(lines)), page_template }),
    changes: DOMAINS_KEY,
    onDone() {
      notify({ text: TEXT.topicsSaved })
      onClose()
    },
  })
  return (
    <FormWindow title={TEXT.topics} submit={TEXT.save} isComplete {...form.window} onClose={onClose}>
      <Textarea
        label={TEXT.topicsLabel}
        description={TEXT.topicsHelp}
        rows={6}
        {...form.field('lines')}
        data-autofocus
      />
      <TextInput
        label={TEXT.pageTemplate}
        description={TEXT.pageTemplateHint}
        {...EXACT}
        {...form.field('page_template')}
      />
    </FormWindow>
  )
}

const topicsOf = (lines: string) =>
  lines
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [tag = '', ...title] = line.split('=')
      return { tag: tag.trim(), title: title.join('=').trim() }
    })

export function HostForm({ domain, onClose }: { domain: DomainDetails; onClose: () => void }) {
  const form = useForm({
    initial: { web_prefix: domain.web_prefix, web_scheme: domain.web_scheme as string },
    send: ({ web_prefix, web_scheme }) =>
      updateDomain(domain.name, { web_prefix: web_prefix.trim(), web_scheme }),
    changes: DOMAINS_KEY,
    onDone() {
      notify({ text: TEXT.hostSaved })
      onClose()
    },
  })
  return (
    <FormWindow
      title={TEXT.host}
      submit={TEXT.save}
      isComplete={form.values.web_prefix.trim() !== ''}
      {...form.window}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.prefix}
        description={TEXT.prefixHelp(domain.name)}
        {...EXACT}
        {...form.field('web_prefix')}
        data-autofocus
      />
      <NativeSelect
        label={TEXT.scheme}
        description={TEXT.schemeHelp}
        data={['http', 'https']}
        {...form.field('web_scheme')}
      />
    </FormWindow>
  )
}

interface MessageValues {
  hours: string
  mailfrom_host: string
  archive_to: string
  send_window: string
  spam_action: string
  wildcard: boolean
}

/** Without those that are as they were: another one may be changed elsewhere meanwhile. */
function changedFields(domain: DomainDetails, values: MessageValues): Record<string, string> {
  const before: Readonly<Record<string, string>> = {
    message_ttl: String(domain.message_ttl),
    mailfrom_host: domain.mailfrom_host,
    archive_to: domain.archive_to ?? '',
    send_window: domain.send_window ?? '',
    spam_action: domain.spam_action,
    wildcard: String(domain.wildcard),
  }
  const wanted = {
    message_ttl: String(Math.round(Number(values.hours.trim()) * SECONDS_PER_HOUR)),
    mailfrom_host: values.mailfrom_host.trim(),
    archive_to: values.archive_to.trim(),
    send_window: values.send_window.trim(),
    spam_action: values.spam_action,
    wildcard: String(values.wildcard),
  }
  return Object.fromEntries(Object.entries(wanted).filter(([field, value]) => value !== before[field]))
}

export function MessagesForm({ domain, onClose }: { domain: DomainDetails; onClose: () => void }) {
  const { name, message_ttl, mailfrom_host, archive_to = '', send_window = '' } = domain
  const { spam_action, wildcard } = domain
  const form = useForm<MessageValues, unknown>({
    initial: {
      hours: message_ttl === 0 ? '' : String(message_ttl / SECONDS_PER_HOUR),
      mailfrom_host,
      archive_to,
      send_window,
      spam_action,
      wildcard,
    },
    send: (values) => updateDomain(name, changedFields(domain, values)),
    changes: DOMAINS_KEY,
    onDone() {
      notify({ text: TEXT.messagesSaved })
      onClose()
    },
  })
  return (
    <FormWindow
      title={TEXT.messages}
      submit={TEXT.save}
      isComplete={/^\d*(?:\.\d+)?$/.test(form.values.hours.trim()) && form.values.mailfrom_host.trim() !== ''}
      {...form.window}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.ttlLabel}
        description={TEXT.ttlHelp}
        inputMode="decimal"
        autoComplete="off"
        {...form.field('hours')}
        data-autofocus
      />
      <TextInput
        label={TEXT.mailfrom}
        description={TEXT.mailfromHelp}
        {...EXACT}
        {...form.field('mailfrom_host')}
      />
      <TextInput
        label={TEXT.archiveLabel}
        description={TEXT.archiveHelp}
        inputMode="url"
        {...EXACT}
        {...form.field('archive_to')}
      />
      <TextInput
        label={TEXT.sendWindowLabel}
        description={TEXT.sendWindowHelp}
        {...EXACT}
        {...form.field('send_window')}
      />
      <NativeSelect
        label={TEXT.spam}
        data={TEXT.spamActions.map(([value, label]) => ({ value, label }))}
        {...form.field('spam_action')}
      />
      <Switch
        label={TEXT.wildcard}
        checked={form.values.wildcard}
        onChange={(event) => form.set({ wildcard: event.currentTarget.checked })}
      />
    </FormWindow>
  )
}
