import { useRouter } from '@tanstack/react-router'

/** Gives the address of the page about a message that was just sent: its own one, else the inbox of its recipient. */
export function useMessageHref(): (messageId: string, recipient: string) => string {
  const { routesByPath, buildLocation } = useRouter()
  return (messageId, recipient) => {
    // The account that is acted for stays in the query.
    const { searchStr } = buildLocation({ to: '/', search: { to: recipient } })
    if (!('/activity/$id' in routesByPath)) return `/${searchStr}`
    const kept = buildLocation({ to: '/', search: {} }).searchStr
    return `/activity/${encodeURIComponent(messageId.replace(/^<|>$/g, ''))}${kept}`
  }
}

/** Gives the address of the page about all mail of an address; undefined without such a page. */
export function useHistoryHref(): (address: string) => string | undefined {
  const { routesByPath, buildLocation } = useRouter()
  return (address) => {
    if (!('/activity' in routesByPath)) return undefined
    const { searchStr } = buildLocation({ to: '/', search: { q: address } })
    return `/activity${searchStr}&span=30d`
  }
}
