/** More than any recipe for replication has. */
const SERVERS_MAX = 16

/**
 * One URL for each server that `text` names.
 * @throws Error when it is not a database URL, or asks for servers that refuse writes
 */
export function serversOf(text: string): string[] {
  const parts = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/s.exec(text)
  const [, start = '', hosts = '', rest = ''] = parts ?? []
  const urls = hosts.split(',').map((host) => `${start}${host}${rest}`)
  const isUrl = parts !== null && (hosts === '' || hosts.split(',').every((host) => host !== ''))
  if (!isUrl || !urls.every((url) => URL.canParse(url)))
    throw new Error('expected postgres://user:password@host:port/database')
  if (urls.length > SERVERS_MAX) throw new Error(`names ${urls.length} servers, more than ${SERVERS_MAX}`)
  const wanted = new URL(urls[0] as string).searchParams.get('target_session_attrs')
  if (wanted !== null && wanted !== 'read-write' && wanted !== 'primary')
    throw new Error('needs a server that can be written: target_session_attrs=read-write')
  return urls
}
