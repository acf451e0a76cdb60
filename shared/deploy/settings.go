package deploy

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
)

// The settings of a deployment: names in the context of the CDK, in cdk.json or given as -c NAME=VALUE. What each means, package
// infra says.
const (
	SettingAgent      = "agent"
	SettingArch       = "arch"
	SettingModel      = "model"
	SettingEnv        = "env"
	SettingOrigins    = "origins"
	SettingRetain     = "retain"
	SettingLogRole    = "logRole"
	SettingMaxStreams = "maxStreams"
	SettingAlarmEmail = "alarmEmail"
	SettingExec       = "execRuntime"
	SettingManifest   = "manifest"
)

// Settings returns the names of all settings, in the order in which they are explained.
func Settings() []string {
	return []string{
		SettingAgent, SettingArch, SettingModel, SettingEnv, SettingOrigins, SettingRetain, SettingLogRole, SettingMaxStreams,
		SettingAlarmEmail, SettingExec, SettingManifest,
	}
}

// Variables reads the setting env: text, ONE=1,TWO=2 or a JSON object of strings, or that object decoded. Without any, the map
// is empty. It fails for a name that is there twice.
func Variables(set any) (map[string]string, error) {
	vars := map[string]string{}
	text, ok := set.(string)
	switch {
	case set == nil || text == "" && ok:
		return vars, nil
	case !ok:
		data, err := json.Marshal(set)
		if err != nil {
			return nil, err
		}
		text = string(data)
	}
	add := func(key, value string) error {
		if _, ok := vars[key]; ok {
			return fmt.Errorf("it has the variable %s twice", key)
		}
		vars[key] = value
		return nil
	}
	if !ok || strings.HasPrefix(strings.TrimSpace(text), "{") {
		return vars, object(text, add)
	}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%q is not NAME=VALUE", pair)
		}
		if err := add(key, value); err != nil {
			return nil, err
		}
	}
	return vars, nil
}

// object has every member of a JSON object of strings added, also those of the same name.
func object(text string, add func(key, value string) error) error {
	if err := json.Unmarshal([]byte(text), new(map[string]string)); err != nil {
		return err
	}
	dec := json.NewDecoder(strings.NewReader(text))
	_, err := dec.Token() // {
	for err == nil && dec.More() {
		var key, value any
		if key, err = dec.Token(); err != nil {
			break
		}
		if value, err = dec.Token(); err != nil {
			break
		}
		if value == nil {
			return fmt.Errorf("the variable %s has no value", key)
		}
		err = add(fmt.Sprint(key), fmt.Sprint(value))
	}
	return err
}

// StackName returns the name of the stack of the agent with the given slug. Different slugs have different stacks.
func StackName(slug string) string {
	name := "bdk-" + slug
	if !strings.Contains(slug, "_") {
		return name
	}
	h := fnv.New32a() // a stack's name has no underscore
	h.Write([]byte(slug))
	return strings.ReplaceAll(name, "_", "-") + "-" + hex.EncodeToString(h.Sum(nil))
}
