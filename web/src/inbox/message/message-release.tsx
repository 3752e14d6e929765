/** Sends a captured message to real addresses, where the operator allows that. Calls POST /sendwright/v1/inbox/:id/release. */
import { ActionIcon, Text, Textarea } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { type CapturedMessage, sendJson } from '../../api.ts'
import { formatBytes } from '../../base/format.ts'
import { Icon } from '../../look/icons.tsx'
import { systemQuery, valueOrThrow } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { RELEASE_TEXT as TEXT } from '../text.ts'

const RECIPIENTS_MAX = 10
const RELEASE_MAX_MS = 90_000 // the service takes a minute at the most, and may wait for another release before

export function ReleaseButton({ message }: { message: CapturedMessage }) {
  const may = useMay({ area: 'domains', access: 'write' })
  const { data: system } = useQuery(systemQuery)
  const [asking, setAsking] = useState(false)
  if (!may || system?.inbox_release !== true) return null
  return (
    <>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label={TEXT.open}
        title={TEXT.open}
        onClick={() => setAsking(true)}
      >
        <Icon name="send" />
      </ActionIcon>
      {asking && <ReleaseForm message={message} onClose={() => setAsking(false)} />}
    </>
  )
}

function ReleaseForm({ message, onClose }: { message: CapturedMessage; onClose: () => void }) {
  const [typed, setTyped] = useState('')
  const to = typed.split(/[\s,]+/).filter((address) => address !== '')
  const isTooMany = to.length > RECIPIENTS_MAX
  const release = useMutation({
    mutationFn: async () =>
      valueOrThrow(
        await sendJson(
          'POST',
          `/sendwright/v1/inbox/${encodeURIComponent(message.id)}/release`,
          { to },
          RELEASE_MAX_MS,
        ),
      ),
    // Sent once more, they would get it twice.
    onSuccess: () => setTyped(''),
  })
  return (
    <FormWindow
      title={TEXT.title}
      submit={to.length > 0 ? TEXT.submit(to.length) : TEXT.submitNone}
      busy={release.isPending}
      isComplete={to.length > 0 && !isTooMany}
      error={release.error}
      onSubmit={() => release.mutate()}
      onClose={onClose}
    >
      <Text size="sm" className="breakable">
        {TEXT.leaves(message.subject, formatBytes(message.size), message.envelope.from)}
      </Text>
      <Textarea
        label={TEXT.to}
        description={TEXT.toHow}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
        {...(isTooMany && { error: TEXT.tooMany })}
        autosize
        minRows={2}
        autoComplete="off"
        spellCheck={false}
        data-autofocus
      />
      {release.data && (
        <div role="status">
          <ul className="release-replies">
            {release.data.recipients.map(({ address, reply }) => (
              <li key={address} className="breakable">
                <bdi>{address}</bdi> <span className="dimmed">{reply}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
    </FormWindow>
  )
}
