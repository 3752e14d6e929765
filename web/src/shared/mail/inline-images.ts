import { useQueries } from '@tanstack/react-query'
import { readBytes } from '../../api.ts'
import { valueOrThrow } from '../../queries.ts'

const INLINE_IMAGES_MAX = 40 // a mail with more inline images than this is malicious
const INLINE_IMAGE_MAX_BYTES = 5_000_000 // base64 in the frame's text takes a third more

/** A file of a message that its HTML may show. */
export interface InlinePart {
  /** Content-ID without angle brackets. */
  id: string
  type: string
  /** Bytes. */
  size: number
  /** Path of the operation that returns its bytes. */
  path: string
}

/**
 * The files that the HTML shows by content-id, as data: URLs; `undefined` until all of them are loaded. One that fails to
 * load is omitted.
 */
export function useInlineImages(
  files: readonly InlinePart[],
  contentIds: readonly string[],
): ReadonlyMap<string, string> | undefined {
  const parts = contentIds
    .map((id) => ({ id, part: files.find((part) => part.id === id) }))
    .filter((found): found is { id: string; part: InlinePart } => isShownInline(found.part))
    .slice(0, INLINE_IMAGES_MAX)
  return useQueries({
    queries: parts.map(({ id, part }) => ({
      queryKey: ['inline-image', part.path],
      queryFn: async ({ signal }: { signal: AbortSignal }) => [id, await loadDataUrl(part, signal)] as const,
      staleTime: Number.POSITIVE_INFINITY,
      gcTime: 0,
    })),
    combine: collectImages,
  })
}

/** Outside the hook: the library caches its result while the function and the data are the same. */
function collectImages(results: { isPending: boolean; data: readonly [string, string] | undefined }[]) {
  if (results.some((result) => result.isPending)) return undefined
  return new Map(results.flatMap((result) => (result.data ? [result.data] : [])))
}

/** A Content-ID without angle brackets. */
export const bareId = (id: string) => id.replace(/^\s*<|>\s*$/g, '')

const isShownInline = (part: InlinePart | undefined) =>
  part !== undefined && IMAGE_TYPE.test(part.type) && part.size <= INLINE_IMAGE_MAX_BYTES

const IMAGE_TYPE = /^image\/[\w.+-]+/i

async function loadDataUrl(part: InlinePart, signal: AbortSignal): Promise<string> {
  const { bytes } = valueOrThrow(await readBytes(part.path, Math.max(part.size, 1), signal))
  const type = IMAGE_TYPE.exec(part.type)?.[0] ?? 'image/png'
  return dataUrl(new Blob([bytes], { type }))
}

const dataUrl = (blob: Blob) =>
  new Promise<string>((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(reader.error ?? new Error('Cannot read the image'))
    reader.readAsDataURL(blob)
  })
