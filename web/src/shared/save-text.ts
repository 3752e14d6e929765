const KEPT_MS = 30_000 // until the browser has begun to save it

/** Saves text as a file of this name. */
export function saveText(parts: readonly string[], name: string, type: string): void {
  const url = URL.createObjectURL(new Blob([...parts], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  window.setTimeout(() => URL.revokeObjectURL(url), KEPT_MS)
}
