/** Media types of files by their names, for senders that do not say: the table is the one of mime-db. */
import mime from 'mime'
import { mediaType } from './parameters.ts'

const UNKNOWN_TYPE = 'application/octet-stream'

/**
 * The media type of an attached file. The sender's type is kept, unless there is none (null) or it only means that the file
 * is bytes, `application/octet-stream`: then the extension of its name decides.
 * @param given as `formatContentType` writes it, with parameters
 * @returns what was given, or a type without parameters; `application/octet-stream` for an unknown extension
 */
export function fileType(given: string | null, filename: string): string {
  if (given !== null && mediaType(given) !== UNKNOWN_TYPE) return given
  // Without a dot the library would take the whole name for an extension.
  return (filename.includes('.') && mime.getType(filename)) || UNKNOWN_TYPE
}
