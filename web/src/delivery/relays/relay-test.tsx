/** The window that sends one message through a relay now, and shows the dialogue. */
import { Badge, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { EXACT, useForm } from '../../shared/forms/use-form.ts'
import { DialogueLines } from '../../shared/mail/dialogue-lines.tsx'
import { RELAYS_KEY, type RelayTest, testRelay } from './relays-api.ts'
import { TRIAL as TEXT } from './text.ts'

export function TestWindow({ name, onClose }: { name: string; onClose: () => void }) {
  const [result, setResult] = useState<RelayTest | null>(null)
  const form = useForm({
    initial: { from: '', to: '' },
    send({ from, to }) {
      setResult(null)
      return testRelay(name, { from: from.trim(), to: to.trim() })
    },
    changes: RELAYS_KEY,
    onDone: setResult,
  })
  const { from, to } = form.values
  return (
    <FormWindow
      title={TEXT.title(name)}
      submit={TEXT.send}
      isComplete={from.trim() !== '' && to.trim() !== ''}
      {...form.window}
      onClose={onClose}
    >
      <Text size="sm">{TEXT.why}</Text>
      <TextInput label={TEXT.from} inputMode="email" {...EXACT} {...form.field('from')} data-autofocus />
      <TextInput label={TEXT.to} inputMode="email" {...EXACT} {...form.field('to')} />
      {/* There before the result, so that screen readers read it. */}
      <div role="status">{result !== null && <Result result={result} />}</div>
      {result !== null && result.lines.length > 0 && (
        <DialogueLines title={TEXT.dialogue} lines={result.lines} />
      )}
    </FormWindow>
  )
}

function Result({ result: { accepted, result, tls, verified } }: { result: RelayTest }) {
  return (
    <>
      <Badge variant="light" tt="none" fw={550} color={accepted ? 'teal' : 'red'}>
        {accepted ? TEXT.accepted : TEXT.notAccepted}
      </Badge>{' '}
      <span className="dimmed queue-small">
        {tls ? (verified ? TEXT.verified : TEXT.unverified) : TEXT.noTls}
      </span>
      <div className="queue-small breakable">{result}</div>
    </>
  )
}
