import { Checkbox, NativeSelect, PasswordInput, TextInput } from '@mantine/core'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { EXACT, useForm } from '../../shared/forms/use-form.ts'
import { notify } from '../../shared/page/notices.tsx'
import {
  changeSink,
  type Field,
  fieldsOf,
  KINDS,
  SINKS_KEY,
  type Sink,
  type SinkKind,
  type SinkSettings,
  saveSink,
} from './sinks-api.ts'
import { TEXT } from './text.ts'

const listOf = (text: string) => text.split(/[\s,;]+/).filter((each) => each !== '')

type Values = Record<Exclude<Field, 'tls'> | 'name' | 'events' | 'from', string> & {
  kind: SinkKind
  tls: boolean
}

/** What the fields of the kind say; an empty one is as if it was not there. */
function settingsOf(values: Values): SinkSettings {
  const given = fieldsOf(values.kind).map(({ field }) => {
    const value = values[field]
    if (typeof value !== 'string') return [field, value || undefined]
    return [field, field === 'servers' ? listOf(value) : value.trim() || undefined]
  })
  const events = listOf(values.events)
  return { ...Object.fromEntries(given), kind: values.kind, events: events.length > 0 ? events : undefined }
}

/** Without `sink`: adds one. The name and kind of an existing one stay, and what the form does not show. */
export function SinkForm({ sink, onClose }: { sink?: Sink; onClose: () => void }) {
  const form = useForm({
    initial: {
      ...{ name: sink?.name ?? '', kind: sink?.kind ?? 'http', secret: '', from: 'now' },
      ...{ url: sink?.url ?? '', servers: sink?.servers?.join(', ') ?? '', topic: sink?.topic ?? '' },
      ...{ bucket: sink?.bucket ?? '', region: sink?.region ?? '', prefix: sink?.prefix ?? '' },
      ...{ vhost: sink?.vhost ?? '', user: sink?.user ?? '', access_key_id: sink?.access_key_id ?? '' },
      ...{ format: sink?.format ?? 'json-lines', mechanism: sink?.mechanism ?? TEXT.mechanisms[0] },
      ...{ tls: sink?.tls ?? false, events: sink?.events?.join(', ') ?? '' },
    } as Values,
    send: (values) =>
      sink
        ? changeSink(sink, settingsOf(values))
        : saveSink(values.name.trim(), { ...settingsOf(values), from: values.from as 'oldest' | 'now' }),
    changes: SINKS_KEY,
    onDone(_, { name }) {
      notify({ text: sink ? TEXT.saved : TEXT.added(name.trim()) })
      onClose()
    },
  })
  const { values } = form
  const fields = fieldsOf(values.kind)
  const isGiven = ({ field, isNeeded }: (typeof fields)[number]) =>
    !isNeeded || (field === 'secret' && sink !== undefined) || String(values[field]).trim() !== ''
  return (
    <FormWindow
      title={sink ? sink.name : TEXT.add}
      submit={sink ? TEXT.save : TEXT.create}
      isComplete={values.name.trim() !== '' && fields.every(isGiven)}
      {...form.window}
      onClose={onClose}
    >
      {!sink && (
        <>
          <TextInput
            label={TEXT.name}
            placeholder={TEXT.namePlaceholder}
            {...EXACT}
            {...form.field('name')}
            data-autofocus
          />
          <NativeSelect
            label={TEXT.kind}
            data={KINDS.map((value) => ({ value, label: TEXT.kinds[value] }))}
            {...form.field('kind')}
          />
        </>
      )}
      {fields.map(({ field }) => {
        const why = TEXT.why[values.kind][field]
        const common = { label: TEXT.fields[field], ...(why && { description: why }) }
        if (field === 'tls')
          return (
            <Checkbox
              key={field}
              {...common}
              checked={values.tls}
              onChange={(event) => form.set({ tls: event.currentTarget.checked })}
            />
          )
        if (field === 'format')
          return (
            <NativeSelect
              key={field}
              {...common}
              data={Object.entries(TEXT.formats).map(([value, label]) => ({ value, label }))}
              {...form.field(field)}
            />
          )
        if (field === 'mechanism')
          return <NativeSelect key={field} {...common} data={[...TEXT.mechanisms]} {...form.field(field)} />
        if (field === 'secret')
          return (
            <PasswordInput
              key={field}
              {...common}
              {...(sink && { description: TEXT.secretKept })}
              {...EXACT}
              autoComplete="new-password"
              {...form.field(field)}
            />
          )
        return <TextInput key={field} {...common} {...EXACT} {...form.field(field)} />
      })}
      <TextInput label={TEXT.events} description={TEXT.eventsWhy} {...EXACT} {...form.field('events')} />
      {!sink && (
        <NativeSelect
          label={TEXT.from}
          data={TEXT.froms.map(([value, label]) => ({ value, label }))}
          {...form.field('from')}
        />
      )}
    </FormWindow>
  )
}
