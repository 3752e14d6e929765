/** The tags of a captured message, which can be changed by hand. Calls PUT /sendwright/v1/inbox/:id/tags. */
import { Button, TextInput } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type CapturedMessage, sendJson } from '../../api.ts'
import { messageQuery, valueOrThrow } from '../../queries.ts'
import { useMay } from '../../session.ts'
import { FormWindow } from '../../shared/forms/form-window.tsx'
import { useSending } from '../../shared/forms/use-sending.ts'
import { INBOX_KEY } from '../inbox-queries.ts'
import { TAGS_TEXT as TEXT } from '../text.ts'

export function MessageTags({ message: { id, tags } }: { message: CapturedMessage }) {
  const may = useMay({ area: 'domains', access: 'write' })
  const [editing, setEditing] = useState(false)
  return (
    <span className="message-tags">
      {tags.map((tag) => (
        <bdi className="tag" key={tag}>
          {tag}
        </bdi>
      ))}
      {may && (
        <Button size="compact-xs" variant="subtle" onClick={() => setEditing(true)}>
          {TEXT.edit}
        </Button>
      )}
      {editing && <TagsForm id={id} tags={tags} onClose={() => setEditing(false)} />}
    </span>
  )
}

function TagsForm({ id, tags, onClose }: { id: string; tags: readonly string[]; onClose: () => void }) {
  const queries = useQueryClient()
  const [typed, setTyped] = useState(tags.join(', '))
  const wanted = typed
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '')
  const isFine = wanted.length <= 20 && wanted.every((tag) => tag.length <= 128)
  const saving = useSending({
    mutationFn: async () =>
      valueOrThrow(
        await sendJson('PUT', `/sendwright/v1/inbox/${encodeURIComponent(id)}/tags`, { tags: wanted }),
      ),
    async onSuccess() {
      await queries.invalidateQueries({ queryKey: messageQuery(id).queryKey })
      await queries.invalidateQueries({ queryKey: [INBOX_KEY] })
      onClose()
    },
  })
  return (
    <FormWindow
      title={TEXT.title}
      submit={TEXT.save}
      busy={saving.isPending}
      isComplete={isFine}
      error={saving.error}
      onSubmit={() => saving.mutate()}
      onClose={onClose}
    >
      <TextInput
        label={TEXT.label}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
        {...(!isFine && { error: TEXT.tooMany })}
        autoComplete="off"
        data-autofocus
      />
    </FormWindow>
  )
}
