import { Alert, Anchor, Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core'
import { useIsMutating, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { valueOrThrow } from '../../queries.ts'
import { DomainChoice, useChosenDomain } from '../../shared/forms/domain-choice.tsx'
import { useSending } from '../../shared/forms/use-sending.ts'
import { useMessageHref } from '../../shared/mail/message-link.ts'
import { sendTest } from './templates-api.ts'
import { VERSION_SAVING, versionQuery } from './templates-queries.ts'
import { TEXT } from './text.ts'

interface SendTestProps {
  template: string
  /** '': a template of the account. */
  domain: string
  tag: string
  onClose: () => void
}

export function SendTest({ opened, ...props }: SendTestProps & { opened: boolean }) {
  return (
    <Modal
      opened={opened}
      onClose={props.onClose}
      title={<strong className="breakable">{TEXT.sendTestOf(props.tag)}</strong>}
      centered
    >
      <TestForm {...props} />
    </Modal>
  )
}

function TestForm({ template, domain, tag, onClose }: SendTestProps) {
  const [to, setTo] = useState('')
  const [chosen, setChosen] = useState<string>()
  const [from, setFrom] = useState('')
  const first = useChosenDomain(chosen)
  const messageHref = useMessageHref()
  const sender = domain === '' ? first : domain
  const version = useQuery(versionQuery(domain, template, tag))
  // Whether the form asks for a sender is known only with the version: nothing is sent before.
  const isSaving = useIsMutating({ mutationKey: VERSION_SAVING }) > 0 // the test is to have what was saved
  const needsFrom = version.data !== undefined && !version.data.headers?.From
  const sending = useSending({
    mutationFn: async () =>
      valueOrThrow(
        await sendTest(sender, {
          to: to.trim(),
          from: needsFrom ? from.trim() || `postmaster@${sender}` : '',
          template,
          version: tag,
          variables: JSON.stringify(version.data?.sample ?? {}),
        }),
      ),
  })
  const fault = sending.error ?? version.error
  if (sending.data)
    return (
      <>
        <Alert color="teal" title={TEXT.sent} role="status">
          <Anchor href={messageHref(sending.data.id)}>{TEXT.openMessage}</Anchor>
        </Alert>
        <Group justify="flex-end" mt="lg">
          <Button variant="default" onClick={() => sending.reset()}>
            {TEXT.sendTest}
          </Button>
        </Group>
      </>
    )
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (!sending.isPending && !isSaving && version.data !== undefined) sending.mutate()
      }}
    >
      <Stack gap="md">
        <TextInput
          label={TEXT.to}
          type="email"
          placeholder="you@example.com"
          autoComplete="email"
          value={to}
          onChange={(event) => setTo(event.currentTarget.value)}
          data-autofocus
        />
        {domain === '' && <DomainChoice label={TEXT.domain} toSend value={sender} onChange={setChosen} />}
        {needsFrom && (
          <TextInput
            label={TEXT.from}
            description={TEXT.fromHint}
            placeholder={`postmaster@${sender}`}
            autoComplete="off"
            value={from}
            onChange={(event) => setFrom(event.currentTarget.value)}
          />
        )}
        {fault && (
          <Text size="sm" c="red" role="alert" className="breakable">
            {fault.message}
          </Text>
        )}
        <Text size="sm" c="dimmed">
          {TEXT.savedOnly}
        </Text>
      </Stack>
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={onClose}>
          {TEXT.cancel}
        </Button>
        <Button
          type="submit"
          loading={sending.isPending || isSaving}
          disabled={to.trim() === '' || sender === '' || version.data === undefined}
        >
          {TEXT.send}
        </Button>
      </Group>
    </form>
  )
}
