/** Multipart forms as a receiver reads them. */
import type { ReceivedPost } from './http-receiver.ts'

export interface PostedForm {
  /** All fields in order. */
  fields: [name: string, value: string | File][]
  /** The last value of a name, as most receivers read it. */
  text(name: string): string | undefined
  texts(name: string): string[]
  file(name: string): File
}

export async function postedForm({ raw, headers }: ReceivedPost): Promise<PostedForm> {
  const init = { headers: { 'content-type': headers['content-type'] ?? '' } }
  const fields = [...(await new Response(new Uint8Array(raw), init).formData())] as PostedForm['fields']
  const texts = (name: string) =>
    fields.flatMap(([other, value]) => (other === name && typeof value === 'string' ? [value] : []))
  return {
    fields,
    texts,
    text: (name) => texts(name).at(-1),
    file(name) {
      const found = fields.find(([other]) => other === name)?.[1]
      if (!(found instanceof File)) throw new Error(`${name} is no file`)
      return found
    },
  }
}
