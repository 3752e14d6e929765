/**
 * An IMAP server that knows Gmail's extension (X-GM-EXT-1) and one message, in the inbox's category that is asked for: enough
 * for a client that looks for a message. It has no STARTTLS.
 */
import { createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'

export interface GmailServer {
  host: string
  port: number
  /** Commands without their tags, passwords left out. */
  commands: string[]
  close(): Promise<void>
}

export async function startGmailServer(host: string, category: string): Promise<GmailServer> {
  const commands: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    socket.write('* OK Gimap ready\r\n')
    createInterface({ input: socket }).on('line', (line) => {
      const [tag = '', ...words] = line.split(' ')
      const command = words.join(' ')
      commands.push(/^LOGIN/i.test(command) ? 'LOGIN' : command)
      for (const answer of answersTo(command, category)) socket.write(`* ${answer}\r\n`)
      socket.write(`${tag} OK done\r\n`)
      if (/^LOGOUT/i.test(command)) socket.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The server has no port')
  return {
    ...{ host, port: address.port, commands },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

const HEADER = 'Subject: Spring\r\n\r\n'

function answersTo(command: string, category: string): string[] {
  if (/^CAPABILITY/i.test(command)) return ['CAPABILITY IMAP4rev1 X-GM-EXT-1']
  if (/^LIST "" ""/i.test(command)) return ['LIST (\\Noselect) "/" "/"']
  if (/^LIST/i.test(command))
    return ['LIST (\\HasNoChildren) "/" "INBOX"', 'LIST (\\All) "/" "[Gmail]/All Mail"']
  if (/^(?:SELECT|EXAMINE)/i.test(command))
    return ['1 EXISTS', '0 RECENT', 'FLAGS (\\Seen)', 'OK [UIDVALIDITY 1]', 'OK [UIDNEXT 8]']
  if (/^UID SEARCH.*X-GM-RAW/i.test(command))
    return command.includes(`category:${category} `) ? ['SEARCH 7'] : ['SEARCH']
  if (/^UID SEARCH/i.test(command)) return ['SEARCH 7']
  if (/^UID FETCH/i.test(command))
    return [
      `1 FETCH (UID 7 INTERNALDATE "01-Jun-2026 12:00:00 +0000" BODY[HEADER] {${HEADER.length}}\r\n${HEADER})`,
    ]
  return command.toUpperCase() === 'LOGOUT' ? ['BYE'] : []
}
