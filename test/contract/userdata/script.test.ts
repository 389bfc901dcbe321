/**
 * The user data as cloud-init and shellcheck read it. `cloud-init schema` validates `#cloud-config` only, and refuses
 * anything else by its first line. The user data is a script anyway: a list of `runcmd` would run at the same moment,
 * and a mapping would need YAML. So cloud-init's own code classifies the user data here, and names what it would run.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { parseUserData, type UserData } from '../../../shared/wire/settings.ts';
import { renderUserData } from '../../../userdata/user-data.ts';
import { NO_ROOT, debianRoot } from '../../support/boot-root/debian-root.ts';
import { runCommand } from '../../support/processes.ts';
import { userDataFor } from '../../support/sandbox/test-bundle.ts';

const place = await debianRoot();
if (place === null) console.warn(`LEFT OUT: ${NO_ROOT}`);

/** Prints how cloud-init handles its input: each part's type, and the file it would run, with its mode. */
const CLOUD_INIT = `
import json, os, sys, tempfile
from cloudinit import helpers, user_data
from cloudinit.handlers import shell_script
with tempfile.TemporaryDirectory() as folder:
    paths = helpers.Paths({'cloud_dir': folder, 'run_dir': folder})
    message = user_data.UserDataProcessor(paths).process(sys.stdin.buffer.read())
    found = []
    for number, part in enumerate(p for p in message.walk() if not p.is_multipart()):
        kind, file = part.get_content_type(), None
        if kind == 'text/x-shellscript':
            name = 'part-%03d' % (number + 1)
            handler = shell_script.ShellScriptPartHandler(paths)
            handler.handle_part(None, kind, name, part.get_payload(decode=True).decode(), None)
            path = os.path.join(paths.get_ipath_cur('scripts'), name)
            file = {'mode': oct(os.stat(path).st_mode & 0o777), 'text': open(path).read()}
        found.append({'type': kind, 'file': file})
    print(json.dumps(found))
`;

describe.skipIf(place === null).each(['http', 'browser'] as const)('the user data (render: %s)', (render) => {
  let script: string;
  beforeAll(() => {
    const given = parseUserData(
      Buffer.from(userDataFor({ bundleUrl: "http://127.0.0.1:1/b?X-Amz-Signature=a&x='1'" }), 'base64').toString(
        'utf8',
      ),
    );
    script = renderUserData({ ...(given as UserData), commands: true }, { render });
  });

  it('is one script to cloud-init, which would run it unchanged', async () => {
    const { stdout, stderr } = await runCommand('chroot', [place!.root, '/usr/bin/python3', '-c', CLOUD_INIT], {
      input: script,
    });
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual([{ type: 'text/x-shellscript', file: { mode: '0o700', text: script } }]);
  });

  it('causes no shellcheck warning', async () => {
    const args = [place!.root, '/usr/bin/shellcheck', '--shell=bash', '--severity=style', '-'];
    const { exitCode, stdout } = await runCommand('chroot', args, { input: script });
    expect(stdout).toBe('');
    expect(exitCode).toBe(0);
  });
});
