import { NativeSelect, Textarea, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { EXACT, useForm } from '../../shared/forms/use-form.ts'
import { notify } from '../../shared/page/notices.tsx'
import {
  ALERTS_KEY,
  CHANNELS,
  type Channel,
  eventTypesQuery,
  type Setting,
  saveSetting,
} from './alerts-api.ts'
import { TEXT } from './text.ts'

const linesOf = (text: string) => text.split(/[\s,;]+/).filter((each) => each !== '')

/** Without `setting`: adds one. */
export function ChannelForm({ setting, onClose }: { setting?: Setting; onClose: () => void }) {
  const types = useQuery(eventTypesQuery)
  const form = useForm({
    initial: {
      event_type: setting?.event_type ?? 'send_alert',
      channel: setting?.channel ?? ('email' as Channel),
      emails: setting?.settings.emails?.join('\n') ?? '',
      url: setting?.settings.url ?? '',
    },
    send: ({ event_type, channel, emails, url }) =>
      saveSetting({
        id: setting?.id,
        event_type,
        channel,
        settings:
          channel === 'email'
            ? { emails: linesOf(emails) }
            : {
                ...(url.trim() !== '' && { url: url.trim() }),
                ...(setting?.settings.channel_ids && { channel_ids: setting.settings.channel_ids }),
              },
      }),
    changes: ALERTS_KEY,
    onDone() {
      notify({ text: TEXT.channelSaved })
      onClose()
    },
  })
  const { event_type, channel, emails, url } = form.values
  const known = types.data ?? [event_type]
  return (
    <FormWindow
      title={setting ? TEXT.changeChannel : TEXT.addChannel}
      submit={TEXT.save}
      isComplete={
        channel === 'email'
          ? linesOf(emails).length > 0
          : url.trim() !== '' || (channel === 'slack' && setting?.settings.channel_ids !== undefined)
      }
      {...form.window}
      onClose={onClose}
    >
      <NativeSelect
        label={TEXT.event}
        data={known.map((value) => ({ value, label: TEXT.events[value] ?? value }))}
        {...form.field('event_type')}
        data-autofocus
      />
      <NativeSelect
        label={TEXT.channel}
        data={CHANNELS.map((value) => ({ value, label: TEXT.channelNames[value] }))}
        {...form.field('channel')}
      />
      {channel === 'email' ? (
        <Textarea
          label={TEXT.emails}
          description={TEXT.emailsWhy}
          rows={3}
          {...EXACT}
          {...form.field('emails')}
        />
      ) : (
        <TextInput
          label={TEXT.url}
          description={TEXT.urlWhy[channel]}
          placeholder="https://"
          inputMode="url"
          {...EXACT}
          {...form.field('url')}
        />
      )}
    </FormWindow>
  )
}
