import { useRouter } from '@tanstack/react-router'

/** Gives the address of the page about a message that was just sent; `messageId` with or without angle brackets. */
export function useMessageHref(): (messageId: string) => string {
  const router = useRouter()
  return (messageId) =>
    router.buildLocation({
      to: '/activity/$id',
      params: { id: messageId.replace(/^<|>$/g, '') },
      search: {},
    }).href
}

/** Gives the address of the page about a person. */
export function usePersonHref(): (address: string) => string {
  const router = useRouter()
  return (address) => router.buildLocation({ to: '/people/$address', params: { address }, search: {} }).href
}
