/** Real bounces of many servers and providers, one a file (the collection "set-of-emails" of the project Sisimai). */

export async function run(_folder: string, print: (line: string) => void): Promise<boolean> {
  print('0 files')
  return true
}
