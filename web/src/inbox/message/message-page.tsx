/** The open message of the captured inbox. Calls GET /sendwright/v1/inbox/:id. */
import { Alert, Button, Skeleton, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Icon } from '../../look/icons.tsx'
import { messageQuery, RefusedRequest } from '../../queries.ts'
import { readInboxSearch } from '../inbox-search.ts'
import { useMarkRead } from '../read-marks.ts'
import { MessageHeading } from './message-heading.tsx'
import { MessageTabs } from './message-tabs.tsx'

const route = getRouteApi('/captured/inbox/$id')

export function MessagePage() {
  const { id } = route.useParams()
  const message = useQuery(messageQuery(id))
  useMarkRead(id)
  return (
    <article className="message">
      {/* The page's heading where there is no room for the list's. */}
      <h1 className="message-back">
        <Link to="/" search={readInboxSearch}>
          <Icon name="back" size={16} /> Inbox
        </Link>
      </h1>
      {message.data !== undefined ? (
        <>
          <MessageHeading message={message.data} />
          <MessageTabs key={id} message={message.data} />
        </>
      ) : message.error !== null ? (
        <MessageFailure error={message.error} retry={() => void message.refetch()} />
      ) : (
        <div className="message-loading" role="status" aria-label="Loading the message">
          <Skeleton height={22} width="60%" />
          <Skeleton height={12} width="40%" mt={16} />
          <Skeleton height={12} width="35%" mt={8} />
        </div>
      )}
    </article>
  )
}

function MessageFailure({ error, retry }: { error: Error; retry: () => void }) {
  const gone = error instanceof RefusedRequest && error.status === 404
  return (
    <Alert
      m="md"
      color={gone ? 'gray' : 'red'}
      title={gone ? 'This message is gone' : 'The message cannot be read'}
    >
      <Text size="sm" className="breakable">
        {gone ? 'It was deleted, or its time in the inbox is over.' : error.message}
      </Text>
      {!gone && (
        <Button mt="sm" size="xs" variant="default" onClick={retry}>
          Try again
        </Button>
      )}
    </Alert>
  )
}
