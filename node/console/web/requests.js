// A search as it is written in programs. The clients' own pages show and test the same calls.

/**
 * @param {string} apiKey
 * @param {number} threshold
 * @returns {{name: string, code: string}[]}
 */
export function requests(apiKey, threshold) {
  const here = location.protocol === 'https:' ? location.origin : 'https://localhost:7420'
  return [
    {
      name: 'curl',
      code: `curl --cacert ca.pem --aws-sigv4 aws:amz:ap-southeast-2:execute-api \\
  --user "$ACCESS_KEY:$SECRET_KEY" -H 'x-api-key: ${apiKey}' \\
  --json "{\\"probe\\":\\"$(base64 -w0 photo.jpg)\\",\\"threshold\\":${threshold}}" \\
  ${here}/v1.1/face/search`,
    },
    {
      name: 'Go',
      code: `c, err := client.FromProfile("profile.json")
if err != nil {
	return err
}
photo, err := os.ReadFile("photo.jpg")
if err != nil {
	return err
}
threshold := ${threshold}
found, err := c.WithAPIKey("${apiKey}").Search(ctx, client.SearchQuery{Probe: photo, Threshold: &threshold})`,
    },
    {
      name: 'Python',
      code: `from facet_client import Client

client = Client.from_profile("profile.json", api_key="${apiKey}")
with open("photo.jpg", "rb") as f:
    found = client.search(f.read(), threshold=${threshold})
for candidate in found.candidates:
    print(candidate.id, candidate.score)`,
    },
    {
      name: 'JavaScript',
      code: `import { readFile } from 'node:fs/promises'
import { fromProfile } from 'facet-client/node'

const client = await fromProfile('profile.json', { apiKey: '${apiKey}' })
const { candidates } = await client.search(await readFile('photo.jpg'), { threshold: ${threshold} })
for (const { id, score } of candidates) console.log(id, score)`,
    },
  ]
}
