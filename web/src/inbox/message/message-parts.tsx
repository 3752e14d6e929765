import { ActionIcon, Loader, Table, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type Attachment, attachmentPath, rawPath, readBytes } from '../../api.ts'
import { CopyButton } from '../../base/copy-button.tsx'
import { formatBytes } from '../../base/format.ts'
import { Icon } from '../../look/icons.tsx'
import { valueOrThrow } from '../../queries.ts'
import { downloadLink } from '../../shared/download.ts'

/** Enough for every header and the start of the parts; the rest can be downloaded. */
const SOURCE_SHOWN_MAX_BYTES = 256 * 1024

export function PlainText({ text, code = false }: { text: string; code?: boolean }) {
  return (
    <pre className={code ? 'plain-text plain-text-code' : 'plain-text'} dir={code ? 'ltr' : 'auto'}>
      {text}
    </pre>
  )
}

export function HeaderTable({ headers }: { headers: readonly [string, string][] }) {
  return (
    <div className="panel-inset">
      <Table className="header-table" verticalSpacing={6} aria-label="Header fields">
        <Table.Tbody>
          {headers.map(([name, value], index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: fields repeat, and their order is theirs for good
            <Table.Tr key={index}>
              <Table.Th scope="row">{name}</Table.Th>
              <Table.Td>
                <bdi>{value}</bdi>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  )
}

export function RawSource({ id }: { id: string }) {
  const path = rawPath(id)
  const source = useQuery({
    queryKey: ['inbox-source', id],
    queryFn: async ({ signal }) => valueOrThrow(await readBytes(path, SOURCE_SHOWN_MAX_BYTES, signal)),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
  })
  if (source.error) return <PanelNote>{source.error.message}</PanelNote>
  if (source.data === undefined) return <Loader m="md" size="sm" aria-label="Loading the source" />
  const text = new TextDecoder().decode(source.data.bytes)
  return (
    <div className="with-corner">
      <div className="corner">
        <CopyButton text={text} what="the source" />
      </div>
      <PlainText code text={text} />
      {!source.data.whole && (
        <PanelNote>
          This is the first {formatBytes(SOURCE_SHOWN_MAX_BYTES)}.{' '}
          <a {...downloadLink(path, `${id}.eml`)}>Download all of it</a>
        </PanelNote>
      )}
    </div>
  )
}

export function AttachmentList(props: { messageId: string; attachments: readonly Attachment[] }) {
  return (
    <ul className="part-list">
      {props.attachments.map((part) => {
        const name = part.name || `part-${part.n}`
        return (
          <li key={part.n}>
            <Icon name="file" size={22} />
            <span className="part-text">
              <bdi className="part-name">{name}</bdi>
              <span className="dimmed">
                {part['content-type']} · {formatBytes(part.size)}
                {part['content-id'] && ' · shown inline'}
              </span>
            </span>
            <ActionIcon
              component="a"
              variant="default"
              size="lg"
              {...downloadLink(attachmentPath(props.messageId, part.n), name)}
              aria-label={`Download ${name}`}
              title="Download"
            >
              <Icon name="download" />
            </ActionIcon>
          </li>
        )
      })}
    </ul>
  )
}

export function PanelNote({ children }: { children: React.ReactNode }) {
  return (
    <Text p="md" size="sm" c="dimmed" className="breakable">
      {children}
    </Text>
  )
}
